#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/graph.h"

// How patterns of products look at graphs: by labels of axes, so that it does not matter whether an
// Einsum, a product of matrices or a Transpose before one has put operands into their order.

namespace tandem::internal {

using Labels = std::vector<int>;

/// A value whose axes have labels, the same in all operands of a pattern.
struct LabelledOperand {
  Output value;
  Labels axes;
};

/// A product of matrices, or of batches of them: labels that the result lacks are summed over.
struct LabelledProduct {
  LabelledOperand a, b;
  Labels result;
};

/// An Einsum of two operands, a MatMul or BatchMatMul of floats of 16 or 32 bits whose shapes are
/// known, without control inputs. No operand has a label twice.
std::optional<LabelledProduct> contraction(const Output& o);

/// The constant order of a Transpose, with axes from the front; nothing for anything else.
std::optional<std::vector<std::int64_t>> transpose_order(const Output& o);
/// The labels of what a Transpose of this order reads, from those of its result.
Labels labels_before(const std::vector<std::int64_t>& order, const Labels& after);

bool has_label(const Labels& labels, int label);
const PartialShape& shape_of(const Output& o);
/// Output 0 of a node of this op without control inputs.
bool is_op(const Output& o, std::string_view op);
/// A constant's value, unless it waits for something: then it belongs to a branch or a loop, and
/// new ones that were made of it would lie outside.
const Array* free_constant(const Output& o);

}  // namespace tandem::internal
