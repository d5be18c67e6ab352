#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/sparse_ops.h"
#include "tandem/runtime/tensor.h"

/// Functions of tf.sparse that are made of ops.
namespace tandem::sparse {

/// Axis i of the result is axis perm[i] of x; all axes in reverse order by default.
TANDEM_EXPORT SparseTensor transpose(const SparseTensor& x,
                                     const std::vector<std::int64_t>& perm = {});
TANDEM_EXPORT SparseTensor expand_dims(const SparseTensor& x, std::int64_t axis = -1);
TANDEM_EXPORT SparseTensor eye(std::int64_t num_rows, std::int64_t num_columns = -1,
                               DType dtype = float32);
/// Only the elements where `to_retain`, a bool for each, holds.
TANDEM_EXPORT SparseTensor retain(const SparseTensor& x, const Tensor& to_retain);
/// `new_shape` must hold all elements; the smallest shape that does by default.
TANDEM_EXPORT SparseTensor reset_shape(const SparseTensor& x, const Tensor& new_shape = {});
/// Nearly equal parts along an axis: the first ones are longer by one where it does not divide.
TANDEM_EXPORT std::vector<SparseTensor> split(const SparseTensor& x, std::int64_t num_split,
                                              std::int64_t axis);
/// Element by element where either has one; zero counts where the other has none.
TANDEM_EXPORT SparseTensor maximum(const SparseTensor& a, const SparseTensor& b);
TANDEM_EXPORT SparseTensor minimum(const SparseTensor& a, const SparseTensor& b);
/// `function` of the values, under the same indices.
template <class F>
SparseTensor map_values(F function, const SparseTensor& x) {
  return {x.indices, function(x.values), x.dense_shape};
}
/// bool [rows, vocab_size]: which ids each row has.
TANDEM_EXPORT Tensor to_indicator(const SparseTensor& ids, std::int64_t vocab_size);
/// For each row how often each of 0 … occurs, as a sparse matrix; a vector gives a sparse vector.
TANDEM_EXPORT SparseTensor bincount(const Tensor& values, const Tensor& weights = {},
                                    std::int64_t minlength = 0, bool binary_output = false);
/// All combinations of the values of each row, joined by `separator`; hashed below num_buckets.
TANDEM_EXPORT SparseTensor cross(const std::vector<SparseTensor>& inputs,
                                 StringView separator = "_X_");
TANDEM_EXPORT SparseTensor cross_hashed(const std::vector<SparseTensor>& inputs,
                                        std::int64_t num_buckets = 0,
                                        std::int64_t hash_key = 956888297470);
/// beta · x + alpha · (a b) at the places of x alone.
TANDEM_EXPORT SparseTensor sampled_addmm(const SparseTensor& x, const Tensor& dense_a,
                                         const Tensor& dense_b, double beta = 1, double alpha = 1);

}  // namespace tandem::sparse
