// The gradient of batch normalisation.

#include <algorithm>
#include <cmath>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/norm/batch_norm.h"
#include "tandem/kernels/cpu/norm/channel_rows.h"
#include "tandem/kernels/cpu/norm/channels.h"
#include "tandem/kernels/cpu/norm/float_blocks.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

Channels check_backward(const KernelContext& c) {
  const auto& format = c.attr<std::string>("data_format");
  const Shape& shape = c.input(0).shape();
  require_image(shape, format);
  if (c.input(1).shape() != shape) {
    throw InvalidArgumentError(cat("x and y_backprop must have same shape, but x has shape ",
                                   c.input(1).shape(), " and y_backprop has shape ", shape));
  }
  const Channels d = Channels::of(shape, format);
  const char* const names[] = {"", "", "scale", "reserve_space_1 (mean)",
                               "reserve_space_2 (variance)"};
  for (int i = 2; i < 5; ++i) {
    require_vector(c, i, names[i]);
    require_channels(c, i, d.channels, names[i]);
  }
  return d;
}

template <class T>
void gradient_sums(KernelContext& c, const Channels& d, const T* g, const T* x, const float* mean,
                   float* sums_and_products) {
  const auto block = rows_at_once(d) * d.row();
  const auto add = [&](std::int64_t begin, std::int64_t end, float* to) {
    Reader<T> in_g(c, block);
    Reader<T> in_x(c, block);
    float* products = to + d.channels;
    in_blocks(d, begin, end, [&](std::int64_t at, std::int64_t rows) {
      const float* gs = in_g.floats(g + at, rows * d.row());
      const float* xs = in_x.floats(x + at, rows * d.row());
      if (d.inner == 1) return gradient_sum_rows(gs, xs, mean, to, products, rows, d.channels);
      for_each_run(d, rows, [&](std::int64_t offset, std::int64_t channel) {
        gradient_sum_run(gs + offset, xs + offset, mean[channel], to + channel, products + channel,
                         d.inner);
      });
    });
  };
  Pieces::of(d).sum(c, d, 2 * d.channels, sums_and_products, add);
}

template <class T>
void gradient_of_x(KernelContext& c, const Channels& d, const T* g, const T* x,
                   const NormalizationGradient& n, T* dx) {
  const double cost = kBatchNormCost * static_cast<double>(d.row());
  c.intra_op().parallel_for(d.outer, cost, [&](std::int64_t begin, std::int64_t end) {
    const auto block = rows_at_once(d) * d.row();
    Reader<T> in_g(c, block);
    Reader<T> in_x(c, block);
    Writer<T> out(c, block);
    in_blocks(d, begin, end, [&](std::int64_t at, std::int64_t rows) {
      const float* gs = in_g.floats(g + at, rows * d.row());
      const float* xs = in_x.floats(x + at, rows * d.row());
      float* to = out.place(dx + at);
      if (d.inner == 1) {
        gradient_rows(gs, xs, n, to, rows, d.channels);
      } else {
        for_each_run(d, rows, [&](std::int64_t offset, std::int64_t channel) {
          gradient_run(gs + offset, xs + offset, n, channel, to + offset, d.inner);
        });
      }
      out.done(dx + at, rows * d.row());
    });
  });
}

// With r = 1 / sqrt(variance + epsilon) and means over all elements of a channel:
//   d offset = sum(g), d scale = r sum(g (x - mean)),
//   dx = scale r (g - mean(g) - (x - mean) r^2 mean(g (x - mean))) when training,
//   dx = scale r g for given moments.
void batch_norm_grad(KernelContext& c) {
  const Channels d = check_backward(c);
  const bool training = c.attr<bool>("is_training");
  const float epsilon = c.attr<float>("epsilon");
  Array& dx = c.allocate_output(0, c.input(0).shape());
  float* d_scale = c.allocate_output(1, Shape{d.channels}).data<float>();
  float* d_offset = c.allocate_output(2, Shape{d.channels}).data<float>();
  c.allocate_output(3, Shape{0});
  c.allocate_output(4, Shape{0});
  const Array scratch = c.allocate_temp(DType::kFloat, Shape{5, d.channels});
  float* sums = scratch.data<float>();
  float* products = sums + d.channels;
  float* factor = products + d.channels;
  float* shift = factor + d.channels;
  float* slope = shift + d.channels;
  const float* scale = c.input(2).data<float>();
  const float* mean = c.input(3).data<float>();
  const float* variance = c.input(4).data<float>();
  const float share =
      training ? 1 / static_cast<float>(std::max<std::int64_t>(1, d.outer * d.inner)) : 0;
  with_type<Half, BFloat16, float>(dx.dtype(), [&]<class T>() {
    const T* g = c.input(0).data<T>();
    const T* x = c.input(1).data<T>();
    gradient_sums(c, d, g, x, mean, sums);
    for (std::int64_t i = 0; i < d.channels; ++i) {
      const float r = 1 / std::sqrt(variance[i] + epsilon);
      d_offset[i] = sums[i];
      d_scale[i] = products[i] * r;
      factor[i] = scale[i] * r;
      shift[i] = sums[i] * share;
      slope[i] = products[i] * share * r * r;
    }
    gradient_of_x(c, d, g, x, {mean, factor, shift, slope}, dx.data<T>());
  });
}

constexpr DTypeSet kFloat{DType::kFloat};
const KernelRegistration kV1{
    {.op = "FusedBatchNormGrad", .types = {{"T", kFloat}}, .run = batch_norm_grad}};
const KernelRegistration kV2{{.op = "FusedBatchNormGradV2",
                              .types = {{"T", kBatchNormTypes}, {"U", kFloat}},
                              .run = batch_norm_grad}};
const KernelRegistration kV3{{.op = "FusedBatchNormGradV3",
                              .types = {{"T", kBatchNormTypes}, {"U", kFloat}},
                              .run = batch_norm_grad}};

}  // namespace
}  // namespace tandem::cpu
