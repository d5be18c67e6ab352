#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/ops/operand.h"
#include "tandem/ops/row_iterator.h"
#include "tandem/ops/sparse_ops.h"
#include "tandem/runtime/structure.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

struct Slice;

/// A tensor with rows of different lengths: the values of all rows one after the other, and for
/// each ragged axis the row splits, at which rows begin and end. `values[splits[i]:splits[i + 1]]`
/// is row i; with several splits the outermost come first, and each splits the rows of the next.
///
/// A value like Tensor: cheap to copy, traced in functions, an argument and a result of them.
///
///     auto words = td::ragged::constant(std::vector<std::vector<int>>{{1, 2, 3}, {}, {4}});
///     td::Tensor padded = words.to_tensor();        // [[1 2 3] [0 0 0] [4 0 0]]
class TANDEM_EXPORT RaggedTensor {
 public:
  RaggedTensor() = default;

  // Makers. Splits, lengths and ids are int32 or int64. Throw InvalidArgumentError for splits that
  // do not begin with 0, descend, or do not end at the number of values (if that is known now).
  static RaggedTensor from_row_splits(Tensor values, Tensor row_splits, bool validate = true);
  static RaggedTensor from_row_splits(RaggedTensor values, Tensor row_splits, bool validate = true);
  static RaggedTensor from_nested_row_splits(Tensor flat_values, std::vector<Tensor> nested_splits,
                                             bool validate = true);
  static RaggedTensor from_row_lengths(const Tensor& values, const Tensor& row_lengths,
                                       bool validate = true);
  /// The row of each value, ascending; nrows: one more than the last by default.
  static RaggedTensor from_value_rowids(const Tensor& values, const Tensor& value_rowids,
                                        const Tensor& nrows = {});
  static RaggedTensor from_row_starts(const Tensor& values, const Tensor& row_starts);
  static RaggedTensor from_row_limits(const Tensor& values, const Tensor& row_limits);
  static RaggedTensor from_uniform_row_length(const Tensor& values, std::int64_t row_length);
  /// The rows of a tensor of rank 2 or more: all of each, the first lengths[i] elements of row i,
  /// or those before the `padding` at a row's end, a scalar or an element of a row. With a
  /// ragged_rank above 1, of a tensor of rank ragged_rank + 1 or more, that many axes become
  /// ragged, and it is the innermost that lengths and padding shorten. Throws InvalidArgumentError
  /// for lengths and padding together.
  template <int = 0>  // so that braces with names are options
  static RaggedTensor from_tensor(const Tensor& tensor, const Tensor& lengths = {},
                                  const Tensor& padding = {}, int ragged_rank = 1) {
    return from_tensor(
        tensor,
        FromTensorOptions{.lengths = lengths, .padding = padding, .ragged_rank = ragged_rank});
  }
  /// What is given by name: `from_tensor(x, {.padding = 0})`.
  struct FromTensorOptions {
    /// Stands first, so that braces without names are a tensor of lengths.
    struct Named {
      Named() = default;
    } named = {};
    Tensor lengths = {};
    Tensor padding = {};
    int ragged_rank = 1;
  };
  static RaggedTensor from_tensor(const Tensor& tensor, const FromTensorOptions& options);
  static RaggedTensor from_sparse(const sparse::SparseTensor& x);

  bool defined() const { return flat_values_.defined(); }
  DType dtype() const { return flat_values_.dtype(); }
  /// The number of ragged axes.
  int ragged_rank() const { return static_cast<int>(splits_.size()); }
  /// -1 in ragged axes and where unknown.
  PartialShape shape() const;
  const Tensor& flat_values() const { return flat_values_; }
  const std::vector<Tensor>& nested_row_splits() const { return splits_; }
  /// Those of the outermost axis.
  const Tensor& row_splits() const;
  /// Throws InvalidArgumentError if the rows are ragged themselves: see ragged_values.
  const Tensor& values() const;
  /// The rows' rows, of ragged rank one less; InvalidArgumentError for ragged rank 1.
  RaggedTensor ragged_values() const;
  Tensor nrows() const;
  Tensor row_lengths() const;
  Tensor row_starts() const;
  Tensor row_limits() const;
  /// The row of each value of the outermost ragged axis.
  Tensor value_rowids() const;
  /// The smallest shape that holds everything, a vector.
  Tensor bounding_shape() const;

  /// The rows' splits with other flat values, of which there must be as many.
  RaggedTensor with_flat_values(Tensor flat_values) const;
  /// Other values for the outermost ragged axis, as many as `values` or `ragged_values` has; throws
  /// InvalidArgumentError otherwise.
  RaggedTensor with_values(const Tensor& values) const;
  RaggedTensor with_values(const RaggedTensor& values) const;
  /// All rows filled up to the longest, or cut and filled to `shape` (-1: the longest).
  Tensor to_tensor(Operand default_value = 0, const std::vector<std::int64_t>& shape = {}) const;
  sparse::SparseTensor to_sparse() const;
  /// A row; of ragged rank 1. Counted from the end if negative.
  Tensor operator[](std::int64_t row) const;
  /// Several rows, as Python's x[begin:end:step].
  RaggedTensor operator[](const Slice& rows) const;
  /// Rows, and a part of each: `x[{td::Slice(), td::Slice(0, 2)}]` are the first two elements of
  /// all rows. At most two entries.
  RaggedTensor operator[](std::initializer_list<Slice> entries) const;
  /// The rows one by one, of ragged rank 1, as those of a Tensor.
  RowIterator<RaggedTensor> begin() const;
  RowIterator<RaggedTensor> end() const;

  /// As TensorFlow prints it: "<tf.RaggedTensor [[1, 2, 3], [], [4]]>".
  std::string to_string() const;

 private:
  Tensor flat_values_;
  std::vector<Tensor> splits_;
};
TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const RaggedTensor& tensor);
/// For td::print: the rows, "[[1, 2, 3], [], [4]]", as tf.print; in traced functions the values and
/// the row splits.
TANDEM_EXPORT void append_printed(internal::PrintedArguments& arguments,
                                  const RaggedTensor& tensor);

using sparse::SparseTensor;

template <>
struct Structure<RaggedTensor> {
  static void write(const RaggedTensor& x, StructureWriter& w) {
    w.key += 'R';
    Structure<Tensor>::write(x.flat_values(), w);
    Structure<std::vector<Tensor>>::write(x.nested_row_splits(), w);
  }
  static RaggedTensor read(const RaggedTensor& like, StructureReader& r) {
    Tensor values = r.next();
    auto splits = Structure<std::vector<Tensor>>::read(like.nested_row_splits(), r);
    return RaggedTensor::from_nested_row_splits(std::move(values), std::move(splits), false);
  }
};

template <>
struct Structure<SparseTensor> {
  static void write(const SparseTensor& x, StructureWriter& w) {
    w.key += 'S';
    Structure<Tensor>::write(x.indices, w);
    Structure<Tensor>::write(x.values, w);
    Structure<Tensor>::write(x.dense_shape, w);
  }
  static SparseTensor read(const SparseTensor&, StructureReader& r) {
    Tensor indices = r.next(), values = r.next(), shape = r.next();
    return {std::move(indices), std::move(values), std::move(shape)};
  }
};

}  // namespace tandem
