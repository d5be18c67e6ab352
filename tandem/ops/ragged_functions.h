#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/core/dtype_like.h"
#include "tandem/core/export.h"
#include "tandem/ops/operand.h"
#include "tandem/ops/ragged_tensor.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/tensor_values.h"

/// Functions of ragged tensors, with the names of tf.ragged.
namespace tandem::ragged {

/// Rows written in C++: vectors of vectors (of vectors …) of numbers or texts.
///
///     auto x = td::ragged::constant(std::vector<std::vector<float>>{{1, 2}, {}, {3}});
template <tandem::internal::Sequence R>
requires tandem::internal::Sequence<typename tandem::internal::SequenceOf<R>::type> RaggedTensor
constant(const R& rows);
/// Rows in braces: `td::ragged::constant<int>({{1, 2}, {3}, {}})`. The elements keep their type:
/// double is float64.
template <class T>
RaggedTensor constant(std::initializer_list<std::initializer_list<T>> rows);
template <class T>
RaggedTensor constant(
    std::initializer_list<std::initializer_list<std::initializer_list<T>>> rows_of_rows);

/// start, start + delta, … below limit for each row; scalars serve for all rows.
TANDEM_EXPORT RaggedTensor range(const Tensor& starts, const Tensor& limits = {},
                                 const Tensor& deltas = Tensor(1), DType row_splits_dtype = int64);
/// [0, 3, 3, 5] gives [0, 0, 0, 2, 2].
/// out_type: the splits' dtype by default.
TANDEM_EXPORT Tensor row_splits_to_segment_ids(const Tensor& splits,
                                               std::optional<DType> out_type = {});
/// The reverse; num_segments: one more than the last by default.
TANDEM_EXPORT Tensor segment_ids_to_row_splits(const Tensor& segment_ids,
                                               const Tensor& num_segments = {},
                                               std::optional<DType> out_type = {});
/// Tensors of any first sizes as rows.
TANDEM_EXPORT RaggedTensor stack(const std::vector<Tensor>& values);
/// Ragged tensors of one ragged rank as the rows of a new first axis; along axis 1 their rows side
/// by side.
TANDEM_EXPORT RaggedTensor stack(const std::vector<RaggedTensor>& values, std::int64_t axis = 0);
/// Rows by the partition of each element: row p has the elements of `data` with partition p.
TANDEM_EXPORT RaggedTensor stack_dynamic_partitions(const Tensor& data, const Tensor& partitions,
                                                    std::int64_t num_partitions);
/// The elements where `mask` holds: rows of a matrix lose what is masked out.
TANDEM_EXPORT RaggedTensor boolean_mask(const Tensor& data, const Tensor& mask);
TANDEM_EXPORT RaggedTensor boolean_mask(const RaggedTensor& data, const RaggedTensor& mask);
/// `function` of the flat values of all ragged arguments, whose row splits must be equal.
template <class F, class... Ragged>
RaggedTensor map_flat_values(F function, const RaggedTensor& first, const Ragged&... rest) {
  return first.with_flat_values(function(first.flat_values(), rest.flat_values()...));
}

// Functions that TensorFlow dispatches on ragged arguments.
/// Along axis 1 of tensors of ragged rank 1.
TANDEM_EXPORT RaggedTensor concat(const std::vector<RaggedTensor>& values, std::int64_t axis);
/// Over the first ragged axis (axis 1): one result for each row.
TANDEM_EXPORT Tensor reduce_sum(const RaggedTensor& x, std::int64_t axis = 1);
TANDEM_EXPORT Tensor reduce_mean(const RaggedTensor& x, std::int64_t axis = 1);
TANDEM_EXPORT Tensor reduce_max(const RaggedTensor& x, std::int64_t axis = 1);
TANDEM_EXPORT Tensor reduce_min(const RaggedTensor& x, std::int64_t axis = 1);
TANDEM_EXPORT Tensor reduce_prod(const RaggedTensor& x, std::int64_t axis = 1);
/// Rows by number.
TANDEM_EXPORT RaggedTensor gather(const RaggedTensor& params, const Tensor& indices);
/// All combinations of the values of each row, joined by "_X_"; hashed to int64 below num_buckets.
TANDEM_EXPORT RaggedTensor cross(const std::vector<RaggedTensor>& inputs);
TANDEM_EXPORT RaggedTensor cross_hashed(const std::vector<RaggedTensor>& inputs,
                                        std::int64_t num_buckets = 0,
                                        std::int64_t hash_key = 956888297470);

// ---- Details of `constant`. ----

namespace internal {
template <class R, class To>
void collect(const R& rows, std::size_t depth, std::vector<std::vector<std::int64_t>>& splits,
             std::vector<To>& values) {
  if constexpr (tandem::internal::Sequence<typename tandem::internal::SequenceOf<R>::type>) {
    if (splits.size() <= depth) splits.push_back({0});
    for (const auto& row : rows) {
      collect(row, depth + 1, splits, values);
      splits[depth].push_back(splits[depth].back() + static_cast<std::int64_t>(row.size()));
    }
  } else {
    for (const auto& value : rows) values.push_back(To(value));
  }
}
template <class R>
constexpr std::size_t depth_of() {
  if constexpr (tandem::internal::Sequence<R>) {
    return 1 + depth_of<typename tandem::internal::SequenceOf<R>::type>();
  } else {
    return 0;
  }
}
}  // namespace internal

template <tandem::internal::Sequence R>
requires tandem::internal::Sequence<typename tandem::internal::SequenceOf<R>::type> RaggedTensor
constant(const R& rows) {
  using To = typename tandem::internal::StoredAs<R>::type;
  std::vector<std::vector<std::int64_t>> splits(internal::depth_of<R>() - 1, {0});
  std::vector<To> values;
  internal::collect(rows, 0, splits, values);
  std::vector<Tensor> nested;
  for (const auto& list : splits) nested.emplace_back(list);
  return RaggedTensor::from_nested_row_splits(Tensor(values), std::move(nested));
}

template <class T>
RaggedTensor constant(std::initializer_list<std::initializer_list<T>> rows) {
  return constant(std::vector<std::vector<T>>(rows.begin(), rows.end()));
}
template <class T>
RaggedTensor constant(
    std::initializer_list<std::initializer_list<std::initializer_list<T>>> rows_of_rows) {
  std::vector<std::vector<std::vector<T>>> all;
  for (const auto& rows : rows_of_rows) all.emplace_back(rows.begin(), rows.end());
  return constant(all);
}

}  // namespace tandem::ragged

// The functions of tensors that take ragged ones, by TensorFlow's names.
namespace tandem {

TANDEM_EXPORT RaggedTensor stack(const std::vector<RaggedTensor>& values, std::int64_t axis = 0);
TANDEM_EXPORT RaggedTensor concat(const std::vector<RaggedTensor>& values, std::int64_t axis);
/// Over all elements, or over the rows (axis 1): see td::ragged.
TANDEM_EXPORT Tensor reduce_sum(const RaggedTensor& x, std::optional<std::int64_t> axis = {});
TANDEM_EXPORT Tensor reduce_mean(const RaggedTensor& x, std::optional<std::int64_t> axis = {});
TANDEM_EXPORT Tensor reduce_max(const RaggedTensor& x, std::optional<std::int64_t> axis = {});
TANDEM_EXPORT Tensor reduce_min(const RaggedTensor& x, std::optional<std::int64_t> axis = {});
TANDEM_EXPORT Tensor reduce_prod(const RaggedTensor& x, std::optional<std::int64_t> axis = {});
TANDEM_EXPORT RaggedTensor gather(const RaggedTensor& params, const Tensor& indices);
TANDEM_EXPORT RaggedTensor cast(const RaggedTensor& x, DTypeLike dtype);

/// Element by element: two ragged tensors of equal rows, or one and a number or scalar.
TANDEM_EXPORT RaggedTensor operator+(const RaggedTensor& a, const RaggedTensor& b);
TANDEM_EXPORT RaggedTensor operator-(const RaggedTensor& a, const RaggedTensor& b);
TANDEM_EXPORT RaggedTensor operator*(const RaggedTensor& a, const RaggedTensor& b);
TANDEM_EXPORT RaggedTensor operator/(const RaggedTensor& a, const RaggedTensor& b);
TANDEM_EXPORT RaggedTensor operator+(const RaggedTensor& a, const Operand& b);
TANDEM_EXPORT RaggedTensor operator-(const RaggedTensor& a, const Operand& b);
TANDEM_EXPORT RaggedTensor operator*(const RaggedTensor& a, const Operand& b);
TANDEM_EXPORT RaggedTensor operator/(const RaggedTensor& a, const Operand& b);
TANDEM_EXPORT RaggedTensor operator+(const Operand& a, const RaggedTensor& b);
TANDEM_EXPORT RaggedTensor operator-(const Operand& a, const RaggedTensor& b);
TANDEM_EXPORT RaggedTensor operator*(const Operand& a, const RaggedTensor& b);
TANDEM_EXPORT RaggedTensor operator/(const Operand& a, const RaggedTensor& b);

}  // namespace tandem
