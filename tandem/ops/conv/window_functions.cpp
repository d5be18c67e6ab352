#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/nn_functions.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/ops_3d.h"
#include "tandem/ops/pool_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::nn {

std::vector<std::int64_t> WindowSizes::of(std::size_t axes) const {
  if (sizes_.size() == axes) return sizes_;
  // TensorFlow also takes a 1 for the batch and the channels.
  if (sizes_.size() == axes + 2 && sizes_.front() == 1 && sizes_.back() == 1)
    return {sizes_.begin() + 1, sizes_.end() - 1};
  if (sizes_.size() != 1) {
    throw InvalidArgumentError(cat("One size or one for each of ", axes,
                                   " spatial axes was expected, got ", sizes_.size(), "."));
  }
  return std::vector<std::int64_t>(axes, sizes_[0]);
}

namespace {

std::string to_2d(std::string_view data_format) {
  if (data_format == "NWC") return "NHWC";
  if (data_format == "NCW") return "NCHW";
  throw InvalidArgumentError(
      cat("data_format must be \"NWC\" or \"NCW\", got '", data_format, "'."));
}

// The height of 1 that makes a 2-D problem of a 1-D one.
int height_axis(const std::string& format) { return format == "NHWC" ? 1 : 2; }

std::size_t spatial_axes(const Tensor& input, const char* what) {
  const int rank = input.rank();
  if (rank < 3 || rank > 5) {
    throw InvalidArgumentError(cat("td::nn::", what,
                                   ": the input must have rank 3, 4 or 5, but its shape is ",
                                   input.partial_shape(), "."));
  }
  return static_cast<std::size_t>(rank) - 2;
}

Size3D three(const std::vector<std::int64_t>& s) { return {s[0], s[1], s[2]}; }

}  // namespace

Tensor conv1d(const Tensor& input, const Tensor& filters, std::int64_t stride, StringView padding,
              StringView data_format, std::int64_t dilations) {
  const std::string format = to_2d(data_format);
  const int axis = height_axis(format);
  return squeeze(conv2d(expand_dims(input, axis), expand_dims(filters, 0), Size2D(1, stride),
                        Padding(std::string(padding)),
                        {.data_format = format, .dilations = Size2D(1, dilations)}),
                 {axis});
}

Tensor conv1d_transpose(const Tensor& input, const Tensor& filters, const IntList& output_shape,
                        std::int64_t strides, StringView padding, StringView data_format) {
  const std::string format = to_2d(data_format);
  const int axis = height_axis(format);
  const Tensor sizes = output_shape.tensor(int32);
  const Tensor wide = concat({sizes[Slice(none, axis)], Tensor{1}, sizes[Slice(axis, none)]}, 0);
  return squeeze(
      conv2d_transpose(expand_dims(input, axis), expand_dims(filters, 0), wide, Size2D(1, strides),
                       Padding(std::string(padding)), {.data_format = format}),
      {axis});
}

Tensor convolution(const Tensor& input, const Tensor& filters, const WindowSizes& strides,
                   StringView padding, const WindowSizes& dilations) {
  const std::size_t axes = spatial_axes(input, "convolution");
  const auto s = strides.of(axes), d = dilations.of(axes);
  if (axes == 1) return conv1d(input, filters, s[0], padding, "NWC", d[0]);
  if (axes == 2) {
    return conv2d(input, filters, Size2D(s[0], s[1]), Padding(std::string(padding)),
                  {.dilations = Size2D(d[0], d[1])});
  }
  return conv3d(input, filters, three(s), padding, {.dilations = three(d)});
}

Tensor conv_transpose(const Tensor& input, const Tensor& filters, const IntList& output_shape,
                      const WindowSizes& strides, StringView padding) {
  const std::size_t axes = spatial_axes(input, "conv_transpose");
  const auto s = strides.of(axes);
  if (axes == 1) return conv1d_transpose(input, filters, output_shape, s[0], padding);
  const Tensor sizes = output_shape.tensor(int32);
  if (axes == 2) {
    return conv2d_transpose(input, filters, sizes, Size2D(s[0], s[1]),
                            Padding(std::string(padding)));
  }
  return conv3d_transpose(input, filters, sizes, three(s), padding);
}

Tensor atrous_conv2d(const Tensor& value, const Tensor& filters, std::int64_t rate,
                     StringView padding) {
  return conv2d(value, filters, 1, Padding(std::string(padding)), {.dilations = rate});
}

Tensor atrous_conv2d_transpose(const Tensor& value, const Tensor& filters,
                               const IntList& output_shape, std::int64_t rate, StringView padding) {
  return raw_op("Conv2DBackpropInput", {output_shape.tensor(int32), filters, value},
                {{"strides", std::vector<std::int64_t>{1, 1, 1, 1}},
                 {"padding", std::string(padding)},
                 {"dilations", std::vector<std::int64_t>{1, rate, rate, 1}}})[0];
}

Tensor depthwise_conv2d_backprop_input(const IntList& input_sizes, const Tensor& filter,
                                       const Tensor& out_backprop,
                                       const std::vector<std::int64_t>& strides, StringView padding,
                                       StringView data_format,
                                       const std::vector<std::int64_t>& dilations) {
  return raw_op("DepthwiseConv2dNativeBackpropInput",
                {input_sizes.tensor(int32), filter, out_backprop},
                {{"strides", strides},
                 {"padding", std::string(padding)},
                 {"data_format", std::string(data_format)},
                 {"dilations", dilations}})[0];
}
Tensor depthwise_conv2d_backprop_filter(const Tensor& input, const IntList& filter_sizes,
                                        const Tensor& out_backprop,
                                        const std::vector<std::int64_t>& strides,
                                        StringView padding, StringView data_format,
                                        const std::vector<std::int64_t>& dilations) {
  return raw_op("DepthwiseConv2dNativeBackpropFilter",
                {input, filter_sizes.tensor(int32), out_backprop},
                {{"strides", strides},
                 {"padding", std::string(padding)},
                 {"data_format", std::string(data_format)},
                 {"dilations", dilations}})[0];
}

namespace {

Tensor pool_any(const Tensor& input, const WindowSizes& ksize, const WindowSizes& strides,
                std::string_view padding, bool max, const char* what) {
  const std::size_t axes = spatial_axes(input, what);
  const auto k = ksize.of(axes), s = strides.of(axes);
  if (axes == 1) {
    const Tensor rows = expand_dims(input, 1);
    const Size2D window(1, k[0]), step(1, s[0]);
    const Padding edges{std::string(padding)};
    return squeeze(
        max ? max_pool2d(rows, window, step, edges) : avg_pool2d(rows, window, step, edges), {1});
  }
  if (axes == 2) {
    const Size2D window(k[0], k[1]), step(s[0], s[1]);
    const Padding edges{std::string(padding)};
    return max ? max_pool2d(input, window, step, edges) : avg_pool2d(input, window, step, edges);
  }
  return max ? max_pool3d(input, three(k), three(s), padding)
             : avg_pool3d(input, three(k), three(s), padding);
}

}  // namespace

Tensor max_pool(const Tensor& input, const WindowSizes& ksize, const WindowSizes& strides,
                StringView padding) {
  return pool_any(input, ksize, strides, padding, true, "max_pool");
}
Tensor avg_pool(const Tensor& input, const WindowSizes& ksize, const WindowSizes& strides,
                StringView padding) {
  return pool_any(input, ksize, strides, padding, false, "avg_pool");
}
Tensor max_pool1d(const Tensor& input, std::int64_t ksize, std::int64_t strides,
                  StringView padding) {
  return max_pool(input, ksize, strides, padding);
}
Tensor avg_pool1d(const Tensor& input, std::int64_t ksize, std::int64_t strides,
                  StringView padding) {
  return avg_pool(input, ksize, strides, padding);
}
Tensor pool(const Tensor& input, const WindowSizes& window_shape, StringView pooling_type,
            const WindowSizes& strides, StringView padding) {
  if (pooling_type != "MAX" && pooling_type != "AVG") {
    throw InvalidArgumentError(
        cat("td::nn::pool: pooling_type is \"MAX\" or \"AVG\", not '", pooling_type, "'."));
  }
  return pool_any(input, window_shape, strides, padding, pooling_type == "MAX", "pool");
}

std::pair<Tensor, Tensor> max_pool_with_argmax(const Tensor& input, Size2D ksize, Size2D strides,
                                               StringView padding, DType output_dtype,
                                               bool include_batch_in_index) {
  auto out = raw_op("MaxPoolWithArgmax", {input},
                    {{"ksize", std::vector<std::int64_t>{1, ksize.height, ksize.width, 1}},
                     {"strides", std::vector<std::int64_t>{1, strides.height, strides.width, 1}},
                     {"padding", std::string(padding)},
                     {"Targmax", output_dtype},
                     {"include_batch_in_index", include_batch_in_index}});
  return {std::move(out[0]), std::move(out[1])};
}

namespace {

FractionalPool fractional(const char* op, const Tensor& value, const std::vector<float>& ratio,
                          bool pseudo_random, bool overlapping, std::int64_t seed) {
  std::vector<float> ratios = ratio;
  if (ratios.size() == 1) ratios = {1.0f, ratio[0], ratio[0], 1.0f};
  if (ratios.size() == 2) ratios = {1.0f, ratio[0], ratio[1], 1.0f};
  auto out = raw_op(op, {value},
                    {{"pooling_ratio", ratios},
                     {"pseudo_random", pseudo_random},
                     {"overlapping", overlapping},
                     {"deterministic", seed != 0},
                     {"seed", seed},
                     {"seed2", seed}});
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

}  // namespace

FractionalPool fractional_max_pool(const Tensor& value, const std::vector<float>& pooling_ratio,
                                   bool pseudo_random, bool overlapping, std::int64_t seed) {
  return fractional("FractionalMaxPool", value, pooling_ratio, pseudo_random, overlapping, seed);
}
FractionalPool fractional_avg_pool(const Tensor& value, const std::vector<float>& pooling_ratio,
                                   bool pseudo_random, bool overlapping, std::int64_t seed) {
  return fractional("FractionalAvgPool", value, pooling_ratio, pseudo_random, overlapping, seed);
}

Tensor dilation2d(const Tensor& input, const Tensor& filters,
                  const std::vector<std::int64_t>& strides, StringView padding,
                  const std::vector<std::int64_t>& dilations) {
  return raw_op("Dilation2D", {input, filters},
                {{"strides", strides}, {"rates", dilations}, {"padding", std::string(padding)}})[0];
}
Tensor erosion2d(const Tensor& value, const Tensor& filters,
                 const std::vector<std::int64_t>& strides, StringView padding,
                 const std::vector<std::int64_t>& dilations) {
  return -dilation2d(-value, reverse(filters, {0, 1}), strides, padding, dilations);
}

}  // namespace tandem::nn
