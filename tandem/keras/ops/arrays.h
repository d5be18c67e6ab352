#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/axes.h"
#include "tandem/ops/conversion_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/int_list.h"
#include "tandem/ops/operand.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/tensor.h"

/// Arrays made, moved, joined and taken apart, as NumPy does.
namespace tandem::keras::ops {

using Axis = std::optional<std::int64_t>;

// ---- Made. ----

using tandem::convert_to_tensor;
using tandem::eye;
using tandem::full;
using tandem::full_like;
using tandem::ones;
using tandem::ones_like;
using tandem::zeros;
using tandem::zeros_like;
TANDEM_EXPORT Tensor array(Operand x, std::optional<DType> dtype = {});
TANDEM_EXPORT Tensor arange(Operand stop, std::optional<DType> dtype = {});
TANDEM_EXPORT Tensor arange(Operand start, Operand stop, Operand step = 1,
                            std::optional<DType> dtype = {});
TANDEM_EXPORT Tensor empty(const IntList& shape, DType dtype = float32);
TANDEM_EXPORT Tensor empty_like(const Tensor& x, std::optional<DType> dtype = {});
TANDEM_EXPORT Tensor identity(std::int64_t n, DType dtype = float32);
TANDEM_EXPORT Tensor linspace(double start, double stop, std::int64_t num = 50,
                              bool endpoint = true, DType dtype = float32);
TANDEM_EXPORT Tensor logspace(double start, double stop, std::int64_t num = 50,
                              bool endpoint = true, double base = 10, DType dtype = float32);
TANDEM_EXPORT Tensor geomspace(double start, double stop, std::int64_t num = 50,
                               bool endpoint = true, DType dtype = float32);
TANDEM_EXPORT std::vector<Tensor> meshgrid(const std::vector<Tensor>& x,
                                           StringView indexing = "xy");
TANDEM_EXPORT Tensor tri(std::int64_t n, std::int64_t m = -1, std::int64_t k = 0,
                         DType dtype = float32);
TANDEM_EXPORT Tensor vander(const Tensor& x, std::int64_t n = -1, bool increasing = false);
TANDEM_EXPORT Tensor bartlett(std::int64_t n);
TANDEM_EXPORT Tensor blackman(std::int64_t n);
TANDEM_EXPORT Tensor hamming(std::int64_t n);
TANDEM_EXPORT Tensor hanning(std::int64_t n);
TANDEM_EXPORT Tensor kaiser(std::int64_t n, double beta);
TANDEM_EXPORT Tensor one_hot(const Tensor& x, std::int64_t num_classes, std::int64_t axis = -1,
                             DType dtype = float32);
TANDEM_EXPORT Tensor multi_hot(const Tensor& x, std::int64_t num_classes, std::int64_t axis = -1,
                               DType dtype = float32);
TANDEM_EXPORT Tensor copy(const Tensor& x);

// ---- Asked. ----

TANDEM_EXPORT std::vector<std::int64_t> shape(const Tensor& x);
inline bool is_tensor(const Tensor& x) { return x.defined(); }
inline DType dtype(const Tensor& x) { return x.dtype(); }
inline int ndim(const Tensor& x) { return x.rank(); }
TANDEM_EXPORT Tensor size(const Tensor& x);
/// The value as an Array on the host.
inline Array convert_to_numpy(const Tensor& x) { return x.array(); }

// ---- Moved. ----

TANDEM_EXPORT Tensor reshape(const Tensor& x, const IntList& newshape);
TANDEM_EXPORT Tensor ravel(const Tensor& x);
TANDEM_EXPORT Tensor transpose(const Tensor& x, const IntList& axes = {});
TANDEM_EXPORT Tensor swapaxes(const Tensor& x, std::int64_t axis1, std::int64_t axis2);
TANDEM_EXPORT Tensor moveaxis(const Tensor& x, std::int64_t source, std::int64_t destination);
TANDEM_EXPORT Tensor expand_dims(const Tensor& x, std::int64_t axis);
TANDEM_EXPORT Tensor squeeze(const Tensor& x, Axis axis = {});
TANDEM_EXPORT Tensor flip(const Tensor& x, Axis axis = {});
TANDEM_EXPORT Tensor fliplr(const Tensor& x);
TANDEM_EXPORT Tensor flipud(const Tensor& x);
TANDEM_EXPORT Tensor rot90(const Tensor& x, std::int64_t k = 1,
                           std::pair<std::int64_t, std::int64_t> axes = {0, 1});
TANDEM_EXPORT Tensor roll(const Tensor& x, std::int64_t shift, Axis axis = {});
TANDEM_EXPORT Tensor repeat(const Tensor& x, std::int64_t repeats, Axis axis = {});
TANDEM_EXPORT Tensor tile(const Tensor& x, const IntList& repeats);
TANDEM_EXPORT Tensor broadcast_to(const Tensor& x, const IntList& shape);
/// pad_width: before and after each axis; mode "constant", "reflect" or "symmetric".
TANDEM_EXPORT Tensor pad(const Tensor& x,
                         const std::vector<std::pair<std::int64_t, std::int64_t>>& pad_width,
                         StringView mode = "constant", double constant_values = 0);
TANDEM_EXPORT Tensor diag(const Tensor& x, std::int64_t k = 0);
TANDEM_EXPORT Tensor diagflat(const Tensor& x, std::int64_t k = 0);
TANDEM_EXPORT Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t axis1 = 0,
                              std::int64_t axis2 = 1);
TANDEM_EXPORT Tensor tril(const Tensor& x, std::int64_t k = 0);
TANDEM_EXPORT Tensor triu(const Tensor& x, std::int64_t k = 0);
TANDEM_EXPORT Tensor view(const Tensor& x, DType dtype);
TANDEM_EXPORT Tensor view_as_complex(const Tensor& x);
TANDEM_EXPORT Tensor view_as_real(const Tensor& x);

// ---- Joined and taken apart. ----

TANDEM_EXPORT Tensor concatenate(const std::vector<Tensor>& xs, std::int64_t axis = 0);
TANDEM_EXPORT Tensor append(const Tensor& x1, const Tensor& x2, Axis axis = {});
TANDEM_EXPORT Tensor stack(const std::vector<Tensor>& x, std::int64_t axis = 0);
TANDEM_EXPORT Tensor hstack(const std::vector<Tensor>& xs);
TANDEM_EXPORT Tensor vstack(const std::vector<Tensor>& xs);
TANDEM_EXPORT Tensor dstack(const std::vector<Tensor>& xs);
TANDEM_EXPORT std::vector<Tensor> split(const Tensor& x, std::int64_t sections,
                                        std::int64_t axis = 0);
/// At these places.
TANDEM_EXPORT std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& indices,
                                        std::int64_t axis = 0);
/// Nearly equal parts.
TANDEM_EXPORT std::vector<Tensor> array_split(const Tensor& x, std::int64_t sections,
                                              std::int64_t axis = 0);
TANDEM_EXPORT std::vector<Tensor> hsplit(const Tensor& x, std::int64_t sections);
TANDEM_EXPORT std::vector<Tensor> vsplit(const Tensor& x, std::int64_t sections);
TANDEM_EXPORT std::vector<Tensor> dsplit(const Tensor& x, std::int64_t sections);
TANDEM_EXPORT std::vector<Tensor> unstack(const Tensor& x, Axis num = {}, std::int64_t axis = 0);

// ---- Picked. ----

/// Flattened without an axis; negative indices count from the end.
TANDEM_EXPORT Tensor take(const Tensor& x, const Tensor& indices, Axis axis = {});
TANDEM_EXPORT Tensor take_along_axis(const Tensor& x, const Tensor& indices, Axis axis = {});
TANDEM_EXPORT Tensor get_item(const Tensor& x, const Index& key);
TANDEM_EXPORT Tensor slice(const Tensor& x, const IntList& start_indices, const IntList& shape);
TANDEM_EXPORT Tensor slice_update(const Tensor& x, const IntList& start_indices,
                                  const Tensor& updates);
TANDEM_EXPORT Tensor scatter(const Tensor& indices, const Tensor& values, const IntList& shape);
TANDEM_EXPORT Tensor scatter_update(const Tensor& x, const Tensor& indices, const Tensor& updates);
TANDEM_EXPORT std::vector<Tensor> nonzero(const Tensor& x);
TANDEM_EXPORT std::vector<Tensor> unravel_index(const Tensor& indices,
                                                const std::vector<std::int64_t>& shape);
TANDEM_EXPORT Tensor unique(const Tensor& x);
TANDEM_EXPORT Tensor isin(const Tensor& x1, const Tensor& x2, bool invert = false);
TANDEM_EXPORT Tensor sort(const Tensor& x, std::int64_t axis = -1);
TANDEM_EXPORT Tensor argsort(const Tensor& x, std::int64_t axis = -1);
/// The kth smallest in its place, smaller ones before it.
TANDEM_EXPORT Tensor argpartition(const Tensor& x, std::int64_t kth, std::int64_t axis = -1);
TANDEM_EXPORT Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values,
                                  StringView side = "left");
TANDEM_EXPORT Tensor digitize(const Tensor& x, const Tensor& bins);
TANDEM_EXPORT std::pair<Tensor, Tensor> top_k(const Tensor& x, std::int64_t k, bool sorted = true);
TANDEM_EXPORT Tensor in_top_k(const Tensor& targets, const Tensor& predictions, std::int64_t k);
TANDEM_EXPORT Tensor extract_sequences(const Tensor& x, std::int64_t sequence_length,
                                       std::int64_t sequence_stride);
TANDEM_EXPORT Tensor stop_gradient(const Tensor& x);

}  // namespace tandem::keras::ops
