#include "tandem/ops/pad_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::op1;

// ---- Pad ----

// The input's shape with `sign` times the paddings added.
void pad_shape(InferenceContext& c, int sign) {
  c.require_rank(1, 2);
  const std::int64_t columns = c.input(1).has_rank() ? c.input(1).dim(1) : kUnknown;
  if (columns != kUnknown && columns != 2) {
    c.fail(cat("paddings must be a matrix with 2 columns: ", c.input(1)));
  }
  const PartialShape& in = c.input(0);
  const std::int64_t rows = c.input(1).has_rank() ? c.input(1).dim(0) : kUnknown;
  if (!in.has_rank()) {
    return c.set_output(0, rows < 0 || rows > Shape::kMaxRank
                               ? PartialShape::unknown()
                               : PartialShape::unknown_of_rank(static_cast<int>(rows)));
  }
  c.merge_dim(in.rank(), rows, "the rank and the rows of paddings");
  PartialShape out = PartialShape::unknown_of_rank(in.rank());
  const auto paddings = c.input_ints(1);
  for (int i = 0; paddings && i < in.rank(); ++i) {
    const std::int64_t before = (*paddings)[static_cast<std::size_t>(2 * i)];
    const std::int64_t after = (*paddings)[static_cast<std::size_t>(2 * i) + 1];
    if (before < 0 || after < 0) c.fail(cat("Paddings must be non-negative: ", before, " ", after));
    const std::int64_t both = internal::add_sizes(before, after);
    if (in.dim(i) == kUnknown) continue;
    if (sign < 0 && both > in.dim(i)) c.fail(cat("paddings exceed the size ", in.dim(i), "."));
    out.set_dim(i, sign < 0 ? in.dim(i) - both : internal::add_sizes(in.dim(i), both));
  }
  c.set_output(0, std::move(out));
}

void padded_shape(InferenceContext& c) { pad_shape(c, 1); }
void unpadded_shape(InferenceContext& c) { pad_shape(c, -1); }

void pad_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor& x = g.input(0);
  const auto paddings = internal::known_ints(g.input(1));
  const auto dims = internal::known_dims(x);
  if (paddings && dims) {
    std::vector<std::int64_t> before;
    for (std::size_t i = 0; i < dims->size(); ++i) before.push_back((*paddings)[2 * i]);
    return g.set(0, slice(g.grad(), before, *dims));
  }
  const Tensor before = index(g.input(1), {Slice(), 0});
  g.set(0, slice(g.grad(), before, shape(x, before.dtype())));
}

void mirror_pad_grad(GradientContext& g) {
  g.set(0, op1("MirrorPadGrad", {g.grad(), g.input(1)}, {{"mode", g.attr<std::string>("mode")}}));
}
void mirror_pad_grad_grad(GradientContext& g) {
  g.set(0, op1("MirrorPad", {g.grad(), g.input(1)}, {{"mode", g.attr<std::string>("mode")}}));
}

// ---- Tile, BroadcastTo ----

void tile_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  const PartialShape& in = c.input(0);
  const auto multiples = c.input_ints(1);
  if (!in.has_rank()) {
    const std::int64_t n = c.input(1).dim(0);
    return c.set_output(0, n < 0 || n > Shape::kMaxRank
                               ? PartialShape::unknown()
                               : PartialShape::unknown_of_rank(static_cast<int>(n)));
  }
  c.merge_dim(in.rank(), c.input(1).dim(0), "the rank and the length of multiples");
  PartialShape out = PartialShape::unknown_of_rank(in.rank());
  for (int i = 0; multiples && i < in.rank(); ++i) {
    const std::int64_t m = (*multiples)[static_cast<std::size_t>(i)];
    if (m < 0) c.fail(cat("Expected multiples[", i, "] >= 0, but got ", m));
    out.set_dim(i, internal::multiply_sizes(in.dim(i), m));
  }
  c.set_output(0, std::move(out));
}

// Each axis of the gradient as (multiple, size), summed over the multiples.
void tile_grad(GradientContext& g) {
  const auto multiples = internal::known_ints(g.input(1));
  const auto dims = internal::known_dims(g.input(0));
  if (multiples && dims) {
    std::vector<std::int64_t> pairs;
    std::vector<std::int64_t> axes;
    for (std::size_t i = 0; i < dims->size(); ++i) {
      axes.push_back(static_cast<std::int64_t>(pairs.size()));
      pairs.push_back((*multiples)[i]);
      pairs.push_back((*dims)[i]);
    }
    return g.set(0, reduce_sum(reshape(g.grad(), pairs), internal::int_vector(axes, int32)));
  }
  const DType index_type = g.input(1).dtype();
  const Tensor sizes = shape(g.input(0), index_type);
  const Tensor pairs = reshape(stack({g.input(1), sizes}, 1), {-1});
  const Tensor axes = range(Tensor(0), size(pairs), Tensor(2));
  g.set(0, reduce_sum(reshape(g.grad(), pairs), axes));
}

void broadcast_to_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  PartialShape out = internal::requested_shape(c, 1);
  const PartialShape& in = c.input(0);
  if (in.has_rank() && out.has_rank()) {
    const int extra = out.rank() - in.rank();
    bool fits = extra >= 0;
    for (int i = 0; fits && i < in.rank(); ++i) {
      const std::int64_t have = in.dim(i);
      const std::int64_t want = out.dim(i + extra);
      fits = have == kUnknown || want == kUnknown || have == 1 || have == want;
      if (fits && want == kUnknown && have != kUnknown && have != 1) out.set_dim(i + extra, have);
    }
    if (!fits) c.fail(cat("Incompatible shapes: ", in, " vs. ", out));
  }
  c.set_output(0, std::move(out));
}

void broadcast_to_grad(GradientContext& g) {
  const auto from = internal::known_dims(g.input(0));
  const auto to = internal::known_dims(g.output());
  if (from && to) {
    std::vector<std::int64_t> axes;
    const std::size_t extra = to->size() - from->size();
    for (std::size_t i = 0; i < to->size(); ++i) {
      if (i < extra || ((*from)[i - extra] == 1 && (*to)[i] != 1)) {
        axes.push_back(static_cast<std::int64_t>(i));
      }
    }
    Tensor sum = axes.empty() ? g.grad() : reduce_sum(g.grad(), internal::int_vector(axes, int32));
    return g.set(0, reshape(sum, *from));
  }
  const DType index_type = g.input(1).dtype();
  const Tensor small = shape(g.input(0), index_type);
  const auto axes = raw_op("BroadcastGradientArgs", {small, shape(g.output(), index_type)});
  g.set(0, reshape(reduce_sum(g.grad(), axes[0]), small));
}

const OpRegistration kPad{{.name = "Pad",
                           .inputs = "input: T, paddings: Tpaddings",
                           .outputs = "output: T",
                           .attrs = "T: type; Tpaddings: index = int32",
                           .shape = padded_shape,
                           .gradient = pad_grad,
                           .traits = {.host_inputs = 0b10},
                           .doc = "The input with paddings[i, 0] zeros before and paddings[i, 1] "
                                  "after it along axis i."}};

const OpRegistration kPadV2{{.name = "PadV2",
                             .inputs = "input: T, paddings: Tpaddings, constant_values: T",
                             .outputs = "output: T",
                             .attrs = "T: type; Tpaddings: index = int32",
                             .shape = padded_shape,
                             .gradient = pad_grad,
                             .traits = {.host_inputs = 0b110},
                             .doc = "The input with a constant around it."}};

const OpRegistration kMirrorPad{
    {.name = "MirrorPad",
     .inputs = "input: T, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = "T: type; Tpaddings: index = int32; mode: {'REFLECT', 'SYMMETRIC'}",
     .shape = padded_shape,
     .gradient = mirror_pad_grad,
     .traits = {.host_inputs = 0b10},
     .doc = "The input mirrored around it, without (REFLECT) or with (SYMMETRIC) its edge."}};

const OpRegistration kMirrorPadGrad{
    {.name = "MirrorPadGrad",
     .inputs = "input: T, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = "T: type; Tpaddings: index = int32; mode: {'REFLECT', 'SYMMETRIC'}",
     .shape = unpadded_shape,
     .gradient = mirror_pad_grad_grad,
     .traits = {.host_inputs = 0b10},
     .doc = "The gradient of MirrorPad: the margin folded back onto the middle."}};

const OpRegistration kTile{{.name = "Tile",
                            .inputs = "input: T, multiples: Tmultiples",
                            .outputs = "output: T",
                            .attrs = "T: type; Tmultiples: index = int32",
                            .shape = tile_shape,
                            .gradient = tile_grad,
                            .traits = {.host_inputs = 0b10},
                            .doc = "The whole repeated multiples[i] times along axis i."}};

const OpRegistration kBroadcastTo{{.name = "BroadcastTo",
                                   .inputs = "input: T, shape: Tidx",
                                   .outputs = "output: T",
                                   .attrs = "T: type; Tidx: index = int32",
                                   .shape = broadcast_to_shape,
                                   .gradient = broadcast_to_grad,
                                   .traits = {.elementwise = true, .host_inputs = 0b10},
                                   .doc = "Repeated along new axes in front and axes of size 1."}};

}  // namespace

Tensor pad(Tensor tensor, Tensor paddings, PadMode mode, double constant_value) {
  switch (mode) {
    case PadMode::kReflect:
      return call1(kMirrorPad, {std::move(tensor), std::move(paddings)}, {{"mode", "REFLECT"}});
    case PadMode::kSymmetric:
      return call1(kMirrorPad, {std::move(tensor), std::move(paddings)}, {{"mode", "SYMMETRIC"}});
    case PadMode::kConstant: break;
  }
  if (constant_value == 0) return call1(kPad, {std::move(tensor), std::move(paddings)});
  Tensor value =
      constant(Tensor::from(std::vector<double>{constant_value}, Shape{}), tensor.dtype());
  return call1(kPadV2, {std::move(tensor), std::move(paddings), std::move(value)});
}

Tensor tile(Tensor input, const IntList& multiples) {
  return call1(kTile, {std::move(input), multiples.tensor()});
}

Tensor repeat(Tensor input, std::int64_t repeats, std::optional<std::int64_t> axis) {
  if (!axis) {
    input = reshape(std::move(input), {-1});
    axis = 0;
  }
  const int rank = input.rank();
  if (rank < 0) throw InvalidArgumentError("td::repeat needs a value of known rank.");
  const int at = normalize_axis(*axis, rank);
  // A new axis behind this one, repeated, and both taken as one.
  std::vector<std::int64_t> multiples(static_cast<std::size_t>(rank) + 1, 1);
  multiples[static_cast<std::size_t>(at) + 1] = repeats;
  const PartialShape before = input.partial_shape();
  std::vector<std::int64_t> dims = before.dims();
  dims[static_cast<std::size_t>(at)] =
      internal::multiply_sizes(dims[static_cast<std::size_t>(at)], repeats);
  std::int64_t open = 0;
  for (std::int64_t d : dims) open += d == kUnknown;
  if (open > 1) {
    Tensor sizes = shape(input, int64);
    std::vector<std::int64_t> factors(static_cast<std::size_t>(rank), 1);
    factors[static_cast<std::size_t>(at)] = repeats;
    sizes = sizes * internal::int_vector(factors, int64);
    return reshape(tile(expand_dims(std::move(input), at + 1), multiples), sizes);
  }
  return reshape(tile(expand_dims(std::move(input), at + 1), multiples), dims);
}

Tensor broadcast_to(Tensor input, const IntList& shape) {
  return call1(kBroadcastTo, {std::move(input), shape.tensor()});
}

}  // namespace tandem
