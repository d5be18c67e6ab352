#include "tandem/keras/internal/spatial.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/images.h"
#include "tandem/keras/internal/sizes_of.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/ops_3d.h"
#include "tandem/ops/pool_ops.h"

namespace tandem::keras::internal {
namespace {

const char* image_format(const Windows& w) { return w.channels_last ? "NHWC" : "NCHW"; }
int row_axis(const Windows& w) { return w.channels_last ? 1 : 2; }

// Sizes of an image's windows; a sequence is an image of one row. `other` stands for the row's.
Size2D image_size(const Sizes& s, std::int64_t other = 1) {
  return s.size() == 1 ? Size2D(other, s[0]) : Size2D(s[0], s[1]);
}

bool of_volumes(const Windows& w) { return w.strides.size() == 3; }
nn::Size3D volume_size(const Sizes& s) { return {s[0], s[1], s[2]}; }
const char* volume_format(const Windows& w) { return w.channels_last ? "NDHWC" : "NCDHW"; }
nn::Volume3DOptions volume_options(const Windows& w) {
  return {.data_format = volume_format(w), .dilations = volume_size(w.dilations)};
}

// `work` done on images, whatever the input is.
template <class Work>
Tensor on_images(const Tensor& x, const Windows& w, const Work& work) {
  if (w.strides.size() != 1) return work(x);
  return squeeze(work(expand_dims(x, row_axis(w))), {row_axis(w)});
}
Tensor image_kernel(const Tensor& kernel, const Windows& w) {
  return w.strides.size() == 1 ? expand_dims(kernel, 0) : kernel;
}

std::int64_t transposed_padding(const Sizes& output_padding, std::size_t axis) {
  return output_padding.empty() ? -1 : output_padding[axis];
}

// What a spatial size n becomes: n · factor + offset.
struct Growth {
  std::int64_t factor;
  std::int64_t offset;
};
Growth transposed_growth(std::int64_t kernel, const Windows& w, std::size_t axis,
                         std::int64_t output_padding) {
  const std::int64_t stride = w.strides[axis];
  const std::int64_t reach = checked_multiply(kernel - 1, w.dilations[axis]) + 1;
  if (w.padding == "VALID") {
    const std::int64_t more = output_padding < 0 ? std::max(reach, stride) - reach : output_padding;
    return {stride, reach - stride + more};
  }
  if (output_padding < 0) return {stride, 0};
  return {stride, reach % 2 + output_padding - stride};
}

// The shape of a transposed convolution's result, computed where it is not known.
Tensor transposed_shape(const Tensor& x, const Tensor& kernel, const Windows& w,
                        const Sizes& output_padding) {
  const int dims = static_cast<int>(w.strides.size());
  std::vector<std::int64_t> known(static_cast<std::size_t>(dims) + 2);
  std::vector<Tensor> computed;
  const int first = w.channels_last ? 1 : 2;
  const int channels = w.channels_last ? dims + 1 : 1;
  const bool all_known = x.partial_shape().is_fully_known();
  const std::vector<Tensor> given = all_known ? std::vector<Tensor>() : scalar_sizes(x);
  for (int i = 0; i < dims + 2; ++i) {
    Growth g{1, 0};
    if (i >= first && i < first + dims) {
      const auto axis = static_cast<std::size_t>(i - first);
      g = transposed_growth(kernel.dim(static_cast<int>(axis)), w, axis,
                            transposed_padding(output_padding, axis));
    }
    if (all_known) {
      known[static_cast<std::size_t>(i)] =
          i == channels ? kernel.dim(dims) : checked_multiply(x.dim(i), g.factor) + g.offset;
    } else if (i == channels) {
      computed.emplace_back(static_cast<int>(kernel.dim(dims)));
    } else if (x.dim(i) >= 0) {
      computed.emplace_back(static_cast<int>(checked_multiply(x.dim(i), g.factor) + g.offset));
    } else if (g.factor == 1 && g.offset == 0) {
      computed.push_back(given[static_cast<std::size_t>(i)]);
    } else {
      const Tensor& n = given[static_cast<std::size_t>(i)];
      computed.push_back(n * static_cast<int>(g.factor) + static_cast<int>(g.offset));
    }
  }
  return all_known ? IntList(std::move(known)).tensor(int32) : stack(computed);
}

}  // namespace

void require_positive_sizes(const std::string& layer, const std::string& what, const Sizes& sizes) {
  for (const std::int64_t size : sizes) require_positive(layer, what, size);
}

void require_equal_strides(const std::string& layer, const Sizes& strides) {
  if (strides.front() != strides.back()) {
    throw InvalidArgumentError(cat(layer, ": both strides must be equal, got ", strides.front(),
                                   " and ", strides.back(), "."));
  }
}

Windows make_windows(const std::string& layer, const std::string& padding,
                     const std::string& data_format, Sizes strides, Sizes dilations) {
  require_positive_sizes(layer, "strides", strides);
  require_positive_sizes(layer, "dilation_rate", dilations);
  const bool channels_last = ops_data_format(layer, data_format) == "NHWC";
  return {ops_padding(layer, padding), channels_last, std::move(strides), std::move(dilations)};
}

bool has_no_window(const Tensor& x, const Tensor& y) {
  for (int axis = 1; axis < y.rank(); ++axis) {
    if (y.dim(axis) == 0 && x.dim(axis) != 0) return true;
  }
  return false;
}

void throw_no_window(const std::string& prefix, const Tensor& x, const Tensor& y) {
  throw InvalidArgumentError(
      cat(prefix, "Computed output size would be zero or negative: ", y.partial_shape(),
          " of an input of shape ", x.partial_shape(),
          ". Use a larger input, a smaller window, or .padding = \"same\"."));
}

Tensor pad_before(const Tensor& x, std::int64_t kernel, const Windows& w) {
  const std::int64_t zeros = checked_multiply(kernel - 1, w.dilations[0]);
  const std::int64_t steps = w.channels_last ? zeros : 0;
  const std::int64_t last = w.channels_last ? 0 : zeros;
  return pad(x, reshape(IntList{0, 0, steps, 0, last, 0}.tensor(), {3, 2}));
}

Tensor convolve(const Tensor& x, const Tensor& kernel, const Windows& w) {
  if (of_volumes(w))
    return nn::conv3d(x, kernel, volume_size(w.strides), w.padding, volume_options(w));
  return on_images(x, w, [&](const Tensor& images) {
    return nn::conv2d(images, image_kernel(kernel, w), image_size(w.strides), w.padding,
                      {.data_format = image_format(w), .dilations = image_size(w.dilations)});
  });
}

Tensor convolve_depthwise(const Tensor& x, const Tensor& kernel, const Windows& w) {
  return on_images(x, w, [&](const Tensor& images) {
    // The op wants equal strides; one row is one row whatever its stride.
    return nn::depthwise_conv2d(
        images, image_kernel(kernel, w), image_size(w.strides, w.strides[0]), w.padding,
        {.data_format = image_format(w), .dilations = image_size(w.dilations)});
  });
}

Tensor convolve_transposed(const Tensor& x, const Tensor& kernel, const Windows& w,
                           const Sizes& output_padding) {
  const Tensor shape = transposed_shape(x, kernel, w, output_padding);
  if (of_volumes(w)) {
    return nn::conv3d_transpose(x, kernel, shape, volume_size(w.strides), w.padding,
                                volume_options(w));
  }
  return on_images(x, w, [&](const Tensor& images) {
    const int row = row_axis(w);
    const Tensor wanted = w.strides.size() == 1
                              ? concat({slice(shape, {0}, {row}), IntList{1}.tensor(int32),
                                        slice(shape, {row}, {-1})},
                                       0)
                              : shape;
    return nn::conv2d_transpose(
        images, image_kernel(kernel, w), wanted, image_size(w.strides), w.padding,
        {.data_format = image_format(w), .dilations = image_size(w.dilations)});
  });
}

Tensor add_channel_bias(Tensor x, const Tensor& bias, const Windows& w) {
  return nn::bias_add(std::move(x), bias, image_format(w));
}

Tensor pool(PoolKind kind, const Tensor& x, const Sizes& window, const Windows& w) {
  if (of_volumes(w)) {
    const auto function = kind == PoolKind::kMax ? nn::max_pool3d : nn::avg_pool3d;
    return function(x, volume_size(window), volume_size(w.strides), w.padding, volume_format(w));
  }
  const auto function = kind == PoolKind::kMax ? nn::max_pool2d : nn::avg_pool2d;
  return on_images(x, w, [&](const Tensor& images) {
    return function(images, image_size(window), image_size(w.strides), w.padding, image_format(w));
  });
}

}  // namespace tandem::keras::internal
