#include "tandem/ops/internal/conv_shapes.h"

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/internal/window.h"

namespace tandem::shapes {
namespace {

void set_image(InferenceContext& c, const WindowAttrs& w, std::int64_t depth) {
  const PartialShape &input = c.input(0), &filter = c.input(1);
  const auto output = [&](int i) {
    return w.axis(i, input.dim(w.spatial_axis(i)), filter.dim(i)).output;
  };
  c.set_output(0, w.make_shape<PartialShape>(input.dim(0), output(0), output(1), depth));
}

}  // namespace

void conv2d(InferenceContext& c) {
  const auto w = read_conv_attrs(c);
  c.require_rank(0, 4);
  c.require_rank(1, 4);
  const std::int64_t depth = c.input(0).dim(w.channel_axis());
  const std::int64_t filter_depth = c.input(1).dim(2), out = c.input(1).dim(3);
  if (filter_depth == 0) c.fail("Depth of filter must not be 0.");
  if (depth >= 0 && filter_depth > 0) {
    if (depth % filter_depth != 0) {
      c.fail(cat("Depth of input (", depth, ") is not a multiple of input depth of filter (",
                 filter_depth, ")."));
    }
    const std::int64_t groups = depth / filter_depth;
    if (out > 0 && groups > 0 && out % groups != 0) {
      c.fail(cat("Depth of output (", out, ") is not a multiple of the number of groups (", groups,
                 ")."));
    }
  }
  set_image(c, w, out);
}

void depthwise_conv2d(InferenceContext& c) {
  const auto w = read_conv_attrs(c);
  c.require_rank(0, 4);
  c.require_rank(1, 4);
  const std::int64_t depth = c.merge_dim(c.input(0).dim(w.channel_axis()), c.input(1).dim(2),
                                         "the depths of input and filter");
  const std::int64_t multiplier = c.input(1).dim(3);
  set_image(
      c, w,
      depth < 0 || multiplier < 0 ? PartialShape::kUnknown : checked_multiply(depth, multiplier));
}

void conv2d_backprop_input(InferenceContext& c) {
  const auto w = read_conv_attrs(c);
  c.require_rank(0, 1);
  c.require_rank(1, 4);
  c.require_rank(2, 4);
  PartialShape sizes = c.input_as_shape(0);
  if (sizes.has_rank() && sizes.rank() == 2) {
    sizes = w.make_shape<PartialShape>(c.input(2).dim(0), sizes.dim(0), sizes.dim(1),
                                       c.input(1).dim(2));
  }
  if (!sizes.has_rank()) sizes = PartialShape::unknown_of_rank(4);
  if (sizes.rank() != 4) {
    c.fail(cat("input_sizes must contain 4 values, or 2 (height and width), but it has ",
               sizes.rank(), "."));
  }
  c.set_output(0, sizes);
}

void conv2d_backprop_filter(InferenceContext& c) {
  read_conv_attrs(c);
  c.require_rank(0, 4);
  c.require_rank(1, 1);
  c.require_rank(2, 4);
  PartialShape sizes = c.input_as_shape(1);
  if (!sizes.has_rank()) sizes = PartialShape::unknown_of_rank(4);
  if (sizes.rank() != 4)
    c.fail(cat("filter_sizes must contain 4 values, but it has ", sizes.rank(), "."));
  c.set_output(0, sizes);
}

}  // namespace tandem::shapes
