#include "tandem/ops/join_ops.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;

// ---- ConcatV2 ----

// Inputs [first, first + n) joined along the axis that input `axis_input` holds.
void join_shape(InferenceContext& c, int first, int n, int axis_input) {
  const auto axis = internal::input_int(c, axis_input);
  int rank = -1;
  for (int i = first; i < first + n; ++i) {
    if (!c.input(i).has_rank()) continue;
    if (rank >= 0 && c.input(i).rank() != rank) {
      c.fail(cat("Ranks of all inputs should match: shape[0] = ", c.input(first), " vs. shape[",
                 i - first, "] = ", c.input(i)));
    }
    rank = c.input(i).rank();
  }
  if (rank < 0) return c.set_output(0, PartialShape::unknown());
  if (rank == 0) c.fail("Scalars cannot be joined: use td::stack.");
  PartialShape out = PartialShape::unknown_of_rank(rank);
  if (!axis) return c.set_output(0, std::move(out));
  const int at = internal::axis_in(c, *axis, rank, "concat axis");
  std::int64_t along = 0;
  for (int i = first; i < first + n; ++i) {
    const PartialShape& in = c.input(i);
    along = internal::add_sizes(along, in.has_rank() ? in.dim(at) : kUnknown);
    for (int d = 0; in.has_rank() && d < rank; ++d) {
      if (d == at) continue;
      if (in.dim(d) >= 0 && out.dim(d) >= 0 && in.dim(d) != out.dim(d)) {
        c.fail(cat("Dimension ", d, " in both shapes must be equal: shape[0] = ", c.input(first),
                   " vs. shape[", i - first, "] = ", in));
      }
      if (in.dim(d) >= 0) out.set_dim(d, in.dim(d));
    }
  }
  out.set_dim(at, along);
  c.set_output(0, std::move(out));
}

void concat_v2_shape(InferenceContext& c) {
  join_shape(c, 0, c.num_inputs() - 1, c.num_inputs() - 1);
}
void concat_shape(InferenceContext& c) { join_shape(c, 1, c.num_inputs() - 1, 0); }

// The sizes of the joined values along the axis, as an integer vector.
Tensor sizes_along(const GradientContext& g, int first, int n, const Tensor& axis) {
  const auto known_axis = internal::known_ints(axis);
  std::vector<std::int64_t> sizes;
  for (int i = first; known_axis && i < first + n; ++i) {
    const PartialShape s = g.input(i).partial_shape();
    const std::int64_t size = s.has_rank() ? s.dim(static_cast<int>(known_axis->at(0))) : kUnknown;
    if (size == kUnknown) break;
    sizes.push_back(size);
  }
  if (static_cast<int>(sizes.size()) == n) return internal::int_vector(sizes, DType::kInt64);
  std::vector<Tensor> all;
  const Tensor dims_axis = floormod(cast(axis, DType::kInt32), rank(g.input(first)));
  for (int i = first; i < first + n; ++i) {
    all.push_back(gather(shape(g.input(i), DType::kInt64), dims_axis, 0));
  }
  return stack(all);
}

void split_gradient(GradientContext& g, int first, int n, const Tensor& axis) {
  const Tensor axis32 = axis.dtype() == DType::kInt32 ? axis : cast(axis, DType::kInt32);
  const auto parts =
      raw_op("SplitV", {g.grad(), sizes_along(g, first, n, axis), axis32}, {{"num_split", n}});
  for (int i = 0; i < n; ++i) {
    if (g.needs(first + i)) g.set(first + i, parts[static_cast<std::size_t>(i)]);
  }
}

void concat_v2_grad(GradientContext& g) {
  split_gradient(g, 0, g.num_inputs() - 1, g.input(g.num_inputs() - 1));
}
void concat_grad(GradientContext& g) { split_gradient(g, 1, g.num_inputs() - 1, g.input(0)); }

void concat_offset_shape(InferenceContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i + 1));
}

// ---- Pack, Unpack ----

void pack_shape(InferenceContext& c) {
  PartialShape one = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!one.is_compatible(c.input(i))) {
      c.fail(cat("Shapes of all inputs must match: values[0].shape = ", c.input(0), " != values[",
                 i, "].shape = ", c.input(i)));
    }
    one = one.merge(c.input(i));
  }
  if (!one.has_rank()) return c.set_output(0, PartialShape::unknown());
  const int rank = one.rank() + 1;
  const int axis = internal::axis_in(c, c.attr<std::int64_t>("axis"), rank);
  std::vector<std::int64_t> dims = one.dims();
  dims.insert(dims.begin() + axis, c.num_inputs());
  c.set_output(0, PartialShape(std::move(dims)));
}

void pack_grad(GradientContext& g) {
  const auto parts = unstack(g.grad(), g.num_inputs(), g.attr<std::int64_t>("axis"));
  for (int i = 0; i < g.num_inputs(); ++i) {
    if (g.needs(i)) g.set(i, parts[static_cast<std::size_t>(i)]);
  }
}

void unpack_shape(InferenceContext& c) {
  const PartialShape& in = c.input(0);
  PartialShape out;
  if (in.has_rank()) {
    const int axis = internal::axis_in(c, c.attr<std::int64_t>("axis"), in.rank());
    if (in.dim(axis) != kUnknown && in.dim(axis) != c.num_outputs()) {
      c.fail(cat("Dimension ", axis, " must be ", c.num_outputs(), " but is ", in.dim(axis),
                 " for input of shape ", in, "."));
    }
    std::vector<std::int64_t> dims = in.dims();
    dims.erase(dims.begin() + axis);
    out = PartialShape(std::move(dims));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
}

void unpack_grad(GradientContext& g) {
  std::vector<Tensor> parts;
  for (int i = 0; i < g.num_outputs(); ++i) parts.push_back(g.grad(i));
  if (!parts.empty()) g.set(0, stack(parts, g.attr<std::int64_t>("axis")));
}

const OpRegistration kConcatV2{{.name = "ConcatV2",
                                .inputs = "values: N * T, axis: Tidx",
                                .outputs = "output: T",
                                .attrs = "N: int >= 2; T: type; Tidx: index = int32",
                                .shape = concat_v2_shape,
                                .gradient = concat_v2_grad,
                                .traits = {.host_inputs = 0b10},
                                .doc = "The values one after the other along an axis."}};

const OpRegistration kConcat{{.name = "Concat",
                              .inputs = "concat_dim: int32, values: N * T",
                              .outputs = "output: T",
                              .attrs = "N: int >= 2; T: type",
                              .shape = concat_shape,
                              .gradient = concat_grad,
                              .traits = {.host_inputs = 1},
                              .doc = "The values one after the other along an axis."}};

const OpRegistration kConcatOffset{
    {.name = "ConcatOffset",
     .inputs = "concat_dim: int32, shape: N * shape_type",
     .outputs = "offset: N * shape_type",
     .attrs = "N: int >= 2; shape_type: index = int32",
     .shape = concat_offset_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = ~0u, .host_outputs = ~0u},
     .doc = "Where values of these shapes begin in the value that they are joined to."}};

const OpRegistration kPack{{.name = "Pack",
                            .inputs = "values: N * T",
                            .outputs = "output: T",
                            .attrs = "N: int >= 1; T: type; axis: int = 0",
                            .shape = pack_shape,
                            .gradient = pack_grad,
                            .traits = {.value = ShapeValue::kPackOfInputs},
                            .doc = "Values of one shape side by side along a new axis."}};

const OpRegistration kUnpack{{.name = "Unpack",
                              .inputs = "value: T",
                              .outputs = "output: num * T",
                              .attrs = "num: int >= 0; T: type; axis: int = 0",
                              .shape = unpack_shape,
                              .gradient = unpack_grad,
                              .doc = "The slices along an axis, without it."}};

}  // namespace

Tensor concat(const std::vector<Tensor>& values, std::int64_t axis) {
  if (values.empty()) throw InvalidArgumentError("td::concat needs at least one value.");
  if (values.size() == 1) {
    const int rank = values[0].rank();
    if (rank >= 0) normalize_axis(axis, rank);
    return identity(values[0]);
  }
  std::vector<Tensor> inputs;
  inputs.reserve(values.size() + 1);
  inputs = values;
  inputs.push_back(internal::index_scalar(axis));
  return call1(kConcatV2, std::span<const Tensor>(inputs));
}

Tensor stack(const std::vector<Tensor>& values, std::int64_t axis) {
  if (values.empty()) throw InvalidArgumentError("td::stack needs at least one value.");
  return call1(kPack, std::span<const Tensor>(values), {{"axis", axis}});
}

std::vector<Tensor> unstack(Tensor value, std::optional<std::int64_t> num, std::int64_t axis) {
  if (!num) {
    const PartialShape s = value.partial_shape();
    if (s.has_rank()) num = s.dim(normalize_axis(axis, s.rank()));
    if (!num || *num == kUnknown) {
      throw InvalidArgumentError(cat("Cannot infer argument `num` from shape ", s,
                                     ": give td::unstack the number of slices."));
    }
  }
  return call(kUnpack, {std::move(value)}, {{"num", *num}, {"axis", axis}});
}

}  // namespace tandem
