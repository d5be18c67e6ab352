#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/graph/graph.h"

// What graphs of images are made of.

namespace tandem::passes {

bool is_op(const Node& node, std::string_view name);
/// [height, width, channels] as a batch of one.
bool makes_batch(const Node& node);
/// The image of a batch of one.
bool takes_from_batch(const Node& node);
/// The attribute `method` of the fused op for one that resizes; null for others.
const char* method_of(const Node& node);
/// Gives an image of bytes, perhaps of a JPEG file.
bool is_decode(const Node& node);
/// Whether each row of a value of shape `whole` has its part of the operand.
bool broadcasts_to(const PartialShape& operand, const PartialShape& whole);

/// Ops one after the other as the attributes and further inputs of an op whose program begins with
/// a row.
struct RowOps {
  std::vector<std::string> ops;
  std::vector<std::int64_t> operands;
  std::vector<Output> args;
  DType result = DType::kFloat;

  /// `steps` follow each other from `first`, whose value is the row. The last may be a cast to
  /// another dtype, which is no part of the program.
  RowOps(const std::vector<Node*>& steps, const Node* first);

 private:
  std::int64_t operand(const Output& in, const Node* previous, std::int64_t made);
  void append(const Node& step, const Node* previous);
};

}  // namespace tandem::passes
