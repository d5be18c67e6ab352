#include <cstring>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/conv/conv.h"

namespace tandem::cpu {
namespace {

void require_image(const Shape& shape, const char* name) {
  if (shape.rank() != 4) {
    throw InvalidArgumentError(cat(name, " must be 4-dimensional, but has shape ", shape, "."));
  }
}

Shape shape_from(const Array& sizes, const char* name) {
  if (sizes.rank() != 1 || sizes.num_elements() != 4) {
    throw InvalidArgumentError(
        cat(name, " must be a vector of 4 sizes, but has shape ", sizes.shape(), "."));
  }
  std::int64_t dims[4];
  for (int i = 0; i < 4; ++i) {
    dims[i] = sizes.data<std::int32_t>()[i];
    if (dims[i] < 0) {
      throw InvalidArgumentError(
          cat(name, " must not be negative, but has ", dims[i], " at position ", i, "."));
    }
  }
  return Shape(dims);
}

// `sizes` may be height and width alone, if batch and depth are known otherwise.
Shape image_sizes(const Array& sizes, bool nchw, std::int64_t batch, std::int64_t depth) {
  if (sizes.rank() != 1 || sizes.num_elements() != 2) return shape_from(sizes, "input_sizes");
  const std::int64_t height = sizes.data<std::int32_t>()[0], width = sizes.data<std::int32_t>()[1];
  if (height < 0 || width < 0) {
    throw InvalidArgumentError(
        cat("input_sizes must not be negative, but are ", height, " and ", width, "."));
  }
  return nchw ? Shape{batch, depth, height, width} : Shape{batch, height, width, depth};
}

void require_output(const ConvCase& p, const Shape& gradient) {
  require_image(gradient, "out_backprop");
  if (!(gradient == p.output_shape())) {
    throw InvalidArgumentError(
        cat("Size of out_backprop doesn't match computed: actual = ", gradient,
            ", computed = ", p.output_shape(), " (input ", p.input_shape(), ", filter ", p.y.filter,
            " x ", p.x.filter, ")."));
  }
}

}  // namespace

ConvCase conv_case(const WindowAttrs& w, DType dtype, const Shape& image, const Shape& filter,
                   bool depthwise) {
  require_image(image, "input");
  require_image(filter, "filter");
  ConvCase p;
  p.dtype = dtype;
  p.nchw = w.nchw;
  p.filter_shape = filter;
  p.batch = image[0];
  p.in_depth = image[w.channel_axis()];
  if (filter[0] == 0 || filter[1] == 0 || filter[2] == 0) {
    throw InvalidArgumentError(
        cat("filter must not have zero elements (all sizes but the last), but has shape ", filter,
            "."));
  }
  if (depthwise) {
    if (filter[2] != p.in_depth) {
      throw InvalidArgumentError(cat("input and filter must have the same depth: ", p.in_depth,
                                     " vs ", filter[2], " (input ", image, ", filter ", filter,
                                     ")."));
    }
    if (w.stride[0] != w.stride[1]) {
      throw InvalidArgumentError(
          cat("Current implementation only supports equal length strides in the row and column "
              "dimensions, but they are ",
              w.stride[0], " and ", w.stride[1], "."));
    }
    p.groups = p.in_depth;
    p.out_depth = checked_multiply(p.in_depth, filter[3]);
  } else {
    if (p.in_depth % filter[2] != 0) {
      throw InvalidArgumentError(
          cat("input depth must be evenly divisible by filter depth: ", p.in_depth, " vs ",
              filter[2], " (input ", image, ", filter ", filter, ")."));
    }
    p.groups = p.in_depth == 0 ? 1 : p.in_depth / filter[2];
    p.out_depth = filter[3];
    if (p.out_depth % p.groups != 0) {
      throw InvalidArgumentError(cat("output depth must be evenly divisible by number of groups: ",
                                     p.out_depth, " vs ", p.groups, "."));
    }
  }
  p.y = w.axis(0, image[w.spatial_axis(0)], filter[0]);
  p.x = w.axis(1, image[w.spatial_axis(1)], filter[1]);
  return p;
}

ConvCase forward_case(const KernelContext& c, bool depthwise) {
  return forward_case(c, c.input(1).shape(), depthwise);
}

ConvCase forward_case(const KernelContext& c, const Shape& filter, bool depthwise) {
  return conv_case(read_conv_attrs(c), c.input(0).dtype(), c.input(0).shape(), filter, depthwise);
}

ConvCase backprop_input_case(const KernelContext& c, bool depthwise) {
  const WindowAttrs w = read_conv_attrs(c);
  const Shape &filter = c.input(1).shape(), &gradient = c.input(2).shape();
  require_image(filter, "filter");
  require_image(gradient, "out_backprop");
  const Shape image = image_sizes(c.input(0), w.nchw, gradient[0], filter[2]);
  const ConvCase p = conv_case(w, c.input(1).dtype(), image, filter, depthwise);
  require_output(p, gradient);
  return p;
}

ConvCase backprop_filter_case(const KernelContext& c, bool depthwise) {
  const WindowAttrs w = read_conv_attrs(c);
  const ConvCase p = conv_case(w, c.input(0).dtype(), c.input(0).shape(),
                               shape_from(c.input(1), "filter_sizes"), depthwise);
  require_output(p, c.input(2).shape());
  return p;
}

void run_conv(KernelContext& c, const ConvCase& p, ConvFn run, const Array& first,
              const Array& second, Array& result) {
  if (result.num_elements() == 0) return;
  if (p.no_work()) {
    std::memset(result.raw_data(), 0, result.num_bytes());
  } else {
    run(c, p, first.raw_data(), second.raw_data(), result.raw_data());
  }
}

}  // namespace tandem::cpu
