#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem::internal {
class PrintedArguments;  // tandem/ops/host_ops.h
}

namespace tandem::sparse {

/// A tensor of indices or sizes, int64. Other integers, such as the int32 of numbers in braces, are
/// converted, as tf.SparseTensor converts what it is given; anything else throws
/// InvalidArgumentError.
class TANDEM_EXPORT Int64Tensor : public Tensor {
 public:
  Int64Tensor() = default;
  Int64Tensor(Tensor tensor);
  template <internal::ConvertsToTensor V>
  Int64Tensor(const V& value) : Int64Tensor(Tensor(value)) {}
  template <internal::Sequence R>
  Int64Tensor(const R& values) : Int64Tensor(Tensor(values)) {}
  // {3, 4} is a vector, {{0, 1}, {2, 3}} and {{0}, {2}} are matrices.
  template <int = 0>
  Int64Tensor(std::initializer_list<internal::MixedNumber> values) : Int64Tensor(Tensor(values)) {}
  Int64Tensor(std::initializer_list<std::initializer_list<internal::MixedNumber>> rows)
      : Int64Tensor(Tensor(rows)) {}
};

/// A tensor of which only some elements are written down, in row-major order of their places; the
/// others are zero.
///
///     td::SparseTensor x{.indices = {{0, 1}, {2, 3}}, .values = {1.5, 2.5}, .dense_shape = {3,
///     4}};
struct TANDEM_EXPORT SparseTensor {
  Int64Tensor indices;      ///< [n, rank]
  Tensor values;            ///< [n]
  Int64Tensor dense_shape;  ///< [rank]

  /// What `dense_shape` says; sizes that a traced function does not know yet are -1.
  PartialShape shape() const;
  DType dtype() const { return values.dtype(); }
  /// -1 when unknown.
  int rank() const { return shape().rank(); }
  /// As TensorFlow prints it: "SparseTensor(indices=…, values=…, dense_shape=…)".
  std::string to_string() const;
};
TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const SparseTensor& tensor);
/// For td::print: "SparseTensor(indices=…, values=…, shape=…)", as tf.print.
TANDEM_EXPORT void append_printed(tandem::internal::PrintedArguments& arguments,
                                  const SparseTensor& tensor);

// Indices out of range, or tensors that do not fit together, throw InvalidArgumentError.

TANDEM_EXPORT SparseTensor from_dense(Tensor tensor);
/// `default_value` in the other places.
TANDEM_EXPORT Tensor to_dense(const SparseTensor& x, double default_value = 0,
                              bool validate_indices = true);
/// Matrix product with a dense matrix.
TANDEM_EXPORT Tensor sparse_dense_matmul(const SparseTensor& a, Tensor b, bool adjoint_a = false,
                                         bool adjoint_b = false);
/// One size may be -1 and follows from the rest.
TANDEM_EXPORT SparseTensor reshape(const SparseTensor& x, const IntList& shape);
/// The elements in row-major order.
TANDEM_EXPORT SparseTensor reorder(const SparseTensor& x);
TANDEM_EXPORT SparseTensor slice(const SparseTensor& x, const IntList& start, const IntList& size);
TANDEM_EXPORT SparseTensor concat(const std::vector<SparseTensor>& parts, std::int64_t axis);
/// Adds tensors of equal shapes; where both have an element and the sum is below `threshold` it is
/// left out.
TANDEM_EXPORT SparseTensor add(const SparseTensor& a, const SparseTensor& b, double threshold = 0);
TANDEM_EXPORT Tensor add(const SparseTensor& a, Tensor dense);
/// Over all axes if none is named; dense.
TANDEM_EXPORT Tensor reduce_sum(const SparseTensor& x, const IntList& axes = {},
                                bool keepdims = false);
/// Over the written elements; 0 where there is none.
TANDEM_EXPORT Tensor reduce_max(const SparseTensor& x, const IntList& axes = {},
                                bool keepdims = false);
/// Over the written elements of each row of the last axis.
TANDEM_EXPORT SparseTensor softmax(const SparseTensor& x);

struct FilledRows {
  SparseTensor filled;
  Tensor empty_row_indicator;  ///< bool: which rows had no element
};
/// An element `default_value` in the first column of rows that have none.
TANDEM_EXPORT FilledRows fill_empty_rows(const SparseTensor& x, Tensor default_value);

}  // namespace tandem::sparse
