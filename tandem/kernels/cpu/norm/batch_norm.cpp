// Batch normalisation: each channel normalized to mean 0 and variance 1, then scaled and shifted.
// Everything is calculated in float.

#include "tandem/kernels/cpu/norm/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/norm/channel_rows.h"
#include "tandem/kernels/cpu/norm/channels.h"
#include "tandem/kernels/cpu/norm/float_blocks.h"
#include "tandem/kernels/cpu/reduce/moments.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

struct Forward {
  Channels d;
  float epsilon = 0;
  float factor = 1;  // of the batch in the running averages
  bool training = true;
};

Forward check_forward(const KernelContext& c) {
  const auto& format = c.attr<std::string>("data_format");
  const Shape& shape = c.input(0).shape();
  require_image(shape, format);
  const char* const names[] = {"", "scale", "offset", "estimated_mean", "estimated_variance"};
  for (int i = 1; i < 5; ++i) {
    require_vector(c, i, names[i]);
  }
  Forward f;
  f.d = Channels::of(shape, format);
  f.epsilon = c.attr<float>("epsilon");
  f.factor = c.attr<float>("exponential_avg_factor");
  f.training = c.attr<bool>("is_training");
  require_channels(c, 1, f.d.channels, "scale");
  require_channels(c, 2, f.d.channels, "offset");
  if (!f.training || f.factor != 1) {
    const char* const when =
        f.training ? "When exponential_avg_factor != 1, " : "When is_training=false, ";
    require_channels(c, 3, f.d.channels, cat(when, "mean"));
    require_channels(c, 4, f.d.channels, cat(when, "variance"));
  }
  return f;
}

template <class T>
void normalize(KernelContext& c, const Channels& d, const T* x, const Normalization& n, T* y) {
  const double cost = kBatchNormCost * static_cast<double>(d.row());
  c.intra_op().parallel_for(d.outer, cost, [&](std::int64_t begin, std::int64_t end) {
    const auto block = rows_at_once(d) * d.row();
    Reader<T> in(c, block);
    Writer<T> out(c, block);
    in_blocks(d, begin, end, [&](std::int64_t at, std::int64_t rows) {
      const float* values = in.floats(x + at, rows * d.row());
      float* to = out.place(y + at);
      if (d.inner == 1) {
        normalize_rows(values, n, to, rows, d.channels);
      } else {
        for_each_run(d, rows, [&](std::int64_t offset, std::int64_t channel) {
          normalize_run(values + offset, n, channel, to + offset, d.inner);
        });
      }
      out.done(y + at, rows * d.row());
    });
  });
}

// The batch's moments mixed into the running averages. The variance of a population is estimated
// without bias: by one observation less.
void update_averages(const KernelContext& c, const Forward& f, const float* mean,
                     const float* variance, float* new_mean, float* new_variance) {
  const auto count = static_cast<float>(f.d.outer * f.d.inner);
  const float unbiased = count > 1 ? count / (count - 1) : count;
  const bool mixed = f.factor != 1;
  const float* old_mean = c.input(3).data<float>();
  const float* old_variance = c.input(4).data<float>();
  for (std::int64_t i = 0; i < f.d.channels; ++i) {
    const float v = variance[i] * unbiased;
    new_mean[i] = mixed ? (1 - f.factor) * old_mean[i] + f.factor * mean[i] : mean[i];
    new_variance[i] = mixed ? (1 - f.factor) * old_variance[i] + f.factor * v : v;
  }
}

void batch_norm(KernelContext& c) {
  const Forward f = check_forward(c);
  const Channels& d = f.d;
  Array& y = c.allocate_output(0, c.input(0).shape());
  float* outputs[5] = {};
  for (int i = 1; i < 5; ++i) outputs[i] = c.allocate_output(i, Shape{d.channels}).data<float>();
  if (c.num_outputs() > 5) *c.allocate_output(5, Shape{}).data<float>() = 0;
  if (y.num_elements() == 0) {
    for (int i = 1; i < 5; ++i) {
      std::fill(outputs[i], outputs[i] + d.channels, std::numeric_limits<float>::quiet_NaN());
    }
    return;
  }
  const Array scratch = c.allocate_temp(DType::kFloat, Shape{d.channels});
  float* factor = scratch.data<float>();
  with_type<Half, BFloat16, float>(y.dtype(), [&]<class T>() {
    const T* x = c.input(0).data<T>();
    float* mean = outputs[3];
    float* variance = outputs[4];
    if (f.training) {
      batch_moments(c, d, y.dtype(), x, mean, variance);
      update_averages(c, f, mean, variance, outputs[1], outputs[2]);
    } else {
      for (const int i : {1, 3}) std::copy_n(c.input(3).data<float>(), d.channels, outputs[i]);
      for (const int i : {2, 4}) std::copy_n(c.input(4).data<float>(), d.channels, outputs[i]);
    }
    const float* scale = c.input(1).data<float>();
    for (std::int64_t i = 0; i < d.channels; ++i) {
      factor[i] = scale[i] / std::sqrt(variance[i] + f.epsilon);
    }
    normalize(c, d, x, {mean, factor, c.input(2).data<float>()}, y.data<T>());
  });
}

constexpr DTypeSet kFloat{DType::kFloat};
const KernelRegistration kV1{{.op = "FusedBatchNorm", .types = {{"T", kFloat}}, .run = batch_norm}};
const KernelRegistration kV2{{.op = "FusedBatchNormV2",
                              .types = {{"T", kBatchNormTypes}, {"U", kFloat}},
                              .run = batch_norm}};
const KernelRegistration kV3{{.op = "FusedBatchNormV3",
                              .types = {{"T", kBatchNormTypes}, {"U", kFloat}},
                              .run = batch_norm}};

}  // namespace
}  // namespace tandem::cpu
