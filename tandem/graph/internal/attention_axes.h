#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/shape.h"

namespace tandem {

/// Attribute `axes` of _FusedAttention: how its operands lie in memory, a letter for each axis.
///
///     B, N   batches of matrices, neither, one or both; an operand of size 1, or without the
///            axis, is repeated
///     T      queries          D   what a query and a key are multiplied along
///     S      keys             E   a value's elements
struct TANDEM_EXPORT AttentionAxes {
  static constexpr std::string_view kLetters = "BNTSDE";
  enum Operand : std::uint8_t { kQuery, kKey, kScores, kValue, kOutput };
  static constexpr int kOperands = 5;

  /// Those of query, key, scores, value and output.
  std::array<std::string, kOperands> of;

  /// Throws InvalidArgumentError unless `axes` are five texts with the letters that belong to each:
  /// TD, SD, TS, SE, TE, and batches, all of which scores and output have. Scores end with S, the
  /// output with E, the others with a letter that is no batch.
  static AttentionAxes read(const std::vector<std::string>& axes);
};

/// The size of each letter of AttentionAxes::kLetters; -1 if unknown, 1 for batches that there are
/// not.
struct TANDEM_EXPORT AttentionSizes {
  std::array<std::int64_t, AttentionAxes::kLetters.size()> sizes;

  /// Makes the axes for shapes of query, key and value. Throws InvalidArgumentError if ranks or
  /// sizes do not fit.
  AttentionSizes(const AttentionAxes& axes, const PartialShape& query, const PartialShape& key,
                 const PartialShape& value);
  std::int64_t operator[](char letter) const { return sizes[AttentionAxes::kLetters.find(letter)]; }
  /// The shape of an operand that is not repeated.
  PartialShape shape(std::string_view letters) const;
};

}  // namespace tandem
