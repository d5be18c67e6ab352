#pragma once

#include <string>
#include <vector>

#include "tandem/kernels/cuda/fused/access.h"
#include "tandem/kernels/cuda/fused/program.h"

namespace tandem::cuda {

/// A kernel to generate: a program over all elements of a result, which is stored, or summed up
/// over all axes but the last, or both.
struct GeneratedKernel {
  FusedProgram program;
  std::vector<Type> types;       ///< of the inputs
  std::vector<Access> accesses;  ///< of the inputs
  /// Results of the program: the first is stored if `stores`, of the others the sums are taken.
  bool stores = true;
  bool in_double = false;  ///< computes and sums up in double, else in float
  Type stored = Type::kFloat;
  /// Sums, if there are any, are written as this type, or, for many rows, for each piece of rows in
  /// the type that is computed in.
  Type summed = Type::kFloat;
  bool in_pieces = false;
  unsigned lanes = 32;  ///< columns that a block sums up, of as many rows as kThreads leaves
  bool wide = false;    ///< indices need 64 bits

  static constexpr unsigned kThreads = 256;
  std::size_t num_sums() const { return program.results.size() - (stores ? 1 : 0); }
  /// Texts are equal if these are.
  std::string key() const;
  /// The source, in the words of support/device_code.h. Its kernel is named kGeneratedName and
  /// takes pointers to the inputs, to the stored result, to each sum (or to the sums of the
  /// pieces), and then the numbers of `numbers_size` indices: elements; for sums columns, rows and
  /// rows of a piece; then those of the accesses. Sums that are not in pieces are divided by the
  /// last argument, of the type that is computed in. Without sums all of it is one parameter, a
  /// part, and the kernel kGeneratedPartsName takes many of them (support/parts.h).
  std::string source() const;
};

constexpr const char* kGeneratedName = "tandem_fused";
constexpr const char* kGeneratedPartsName = "tandem_fused_parts";

}  // namespace tandem::cuda
