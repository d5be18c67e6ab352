// Batch normalisation: each channel normalized to mean 0 and variance 1, then scaled and shifted,
// and its gradient. Everything is calculated in float.

#include "tandem/kernels/cuda/norm/channel_sums.h"

namespace tandem::cuda {
namespace {

struct Moments {
  const float *scale, *old_mean, *old_variance;
  float *new_mean, *new_variance, *mean, *variance, *factor;
  float epsilon, average_factor;
  bool training;
};

template <class T>
TANDEM_KERNEL moments_kernel(const T* x, const Two* partial, Channels c, std::int64_t pieces,
                             Moments m) {
  for (auto i = first_index<std::int64_t>(); i < c.channels; i += index_step<std::int64_t>()) {
    float mean, variance, new_mean, new_variance;
    if (m.training) {
      const auto n = static_cast<float>(c.elements());
      const Two sum = total_of(partial, i, c.channels, pieces);
      const float shift = sum.first / n;
      mean = load(x[i * c.inner]) + shift;
      variance = sum.second / n - shift * shift;
      if (variance < 0.0f) variance = 0.0f;
      // The variance of a population is estimated without bias: by one observation less.
      const float unbiased = variance * (n > 1.0f ? n / (n - 1.0f) : n);
      const float f = m.average_factor;
      new_mean = f == 1.0f ? mean : (1.0f - f) * m.old_mean[i] + f * mean;
      new_variance = f == 1.0f ? unbiased : (1.0f - f) * m.old_variance[i] + f * unbiased;
    } else {
      mean = new_mean = m.old_mean[i];
      variance = new_variance = m.old_variance[i];
    }
    m.mean[i] = mean;
    m.variance[i] = variance;
    m.new_mean[i] = new_mean;
    m.new_variance[i] = new_variance;
    m.factor[i] = m.scale[i] / std::sqrt(variance + m.epsilon);
  }
}

template <class T>
TANDEM_KERNEL normalize_kernel(const T* x, T* y, std::int64_t n, Channels c, const float* mean,
                               const float* factor, const float* offset) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t channel = c.channel_of(i);
    y[i] = store<T>((load(x[i]) - mean[channel]) * factor[channel] + offset[channel]);
  }
}

TANDEM_KERNEL fill_kernel(float* y, std::int64_t n, float value) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) y[i] = value;
}

void fill(const TensorView& y, float value) {
  if (y.count > 0) {
    TANDEM_LAUNCH(fill_kernel, shape_for(y.count), 0, y.as<float>(), y.count, value);
  }
}

template <class F>
void visit_inputs(Type type, F&& f) {
  if (type == Type::kFloat) return f(Tag<float>());
  if (type == Type::kHalf) return f(Tag<Half>());
  if (type == Type::kBFloat16) return f(Tag<BFloat16>());
  no_kernel_for(type);
}

Channels checked_channels(const KernelCall& call, const Sizes& sizes) {
  const std::string format = call.attr_string("data_format");
  if (sizes.size() != format.size()) {
    refuse("input must be " + std::to_string(format.size()) + "-dimensional (" + format + ")");
  }
  return channels_of(sizes, format);
}

void check_vector(const KernelCall& call, int i, std::int64_t channels, const char* name) {
  const TensorView v = call.input(i);
  if (v.rank() != 1) refuse(std::string(name) + " must be 1-dimensional");
  if (channels >= 0 && v.count != channels) {
    refuse(std::string(name) + " must have the same number of elements as the channels of x");
  }
}

// ---- The gradient ----

template <class T>
struct GradientTerms {
  const T *g, *x;
  const float* mean;
  TANDEM_DEVICE Two operator()(std::int64_t i, std::int64_t channel) const {
    const float gradient = load(g[i]);
    return {gradient, gradient * (load(x[i]) - mean[channel])};
  }
};

struct Slopes {
  const float *scale, *variance;
  float *d_scale, *d_offset, *factor, *shift, *slope;
  float epsilon, share;
};

// With r = 1 / sqrt(variance + epsilon) and means over all elements of a channel:
//   d offset = sum(g), d scale = r sum(g (x - mean)),
//   dx = scale r (g - mean(g) - (x - mean) r^2 mean(g (x - mean))) when training,
//   dx = scale r g for given moments (share 0).
TANDEM_KERNEL slopes_kernel(const Two* partial, Channels c, std::int64_t pieces, Slopes s) {
  for (auto i = first_index<std::int64_t>(); i < c.channels; i += index_step<std::int64_t>()) {
    const Two sum = total_of(partial, i, c.channels, pieces);
    const float r = 1.0f / std::sqrt(s.variance[i] + s.epsilon);
    s.d_offset[i] = sum.first;
    s.d_scale[i] = sum.second * r;
    s.factor[i] = s.scale[i] * r;
    s.shift[i] = sum.first * s.share;
    s.slope[i] = sum.second * s.share * r * r;
  }
}

template <class T>
TANDEM_KERNEL gradient_kernel(const T* g, const T* x, T* dx, std::int64_t n, Channels c,
                              const float* mean, const float* factor, const float* shift,
                              const float* slope) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t k = c.channel_of(i);
    const float centered = load(x[i]) - mean[k];
    dx[i] = store<T>(factor[k] * (load(g[i]) - shift[k] - centered * slope[k]));
  }
}

}  // namespace

void norm_batch(KernelCall& call) {
  const TensorView x = call.input(0);
  const Channels c = checked_channels(call, x.sizes);
  Moments m = {};
  m.epsilon = call.attr_float("epsilon");
  m.average_factor = call.attr_float("exponential_avg_factor");
  m.training = call.attr_bool("is_training");
  check_vector(call, 1, c.channels, "scale");
  check_vector(call, 2, c.channels, "offset");
  const bool given = !m.training || m.average_factor != 1.0f;
  check_vector(call, 3, given ? c.channels : -1, "mean");
  check_vector(call, 4, given ? c.channels : -1, "variance");
  const TensorView y = call.allocate_output(0, x.sizes);
  TensorView outputs[5];
  for (int i = 1; i < 5; ++i) outputs[i] = call.allocate_output(i, {c.channels});
  if (call.num_outputs() > 5) fill(call.allocate_output(5, {}), 0.0f);
  if (y.count == 0) {
    for (int i = 1; i < 5; ++i) fill(outputs[i], std::numeric_limits<float>::quiet_NaN());
    return;
  }
  const std::int64_t pieces = m.training ? channel_pieces(c) : 0;
  const auto sums = static_cast<std::size_t>(pieces * c.channels) * sizeof(Two);
  auto* memory = static_cast<std::byte*>(
      call.scratch(sums + static_cast<std::size_t>(c.channels) * sizeof(float)));
  Two* const partial = reinterpret_cast<Two*>(memory);
  m.factor = reinterpret_cast<float*>(memory + sums);
  m.scale = call.input(1).as<float>();
  m.old_mean = call.input(3).as<float>();
  m.old_variance = call.input(4).as<float>();
  m.new_mean = outputs[1].as<float>();
  m.new_variance = outputs[2].as<float>();
  m.mean = outputs[3].as<float>();
  m.variance = outputs[4].as<float>();
  visit_inputs(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (m.training) channel_sums(MomentTerms<T>{x.as<T>(), c.inner}, c, partial);
    TANDEM_LAUNCH(moments_kernel<T>, shape_for(c.channels), 0, x.as<T>(), partial, c, pieces, m);
    TANDEM_LAUNCH(normalize_kernel<T>, shape_for(y.count), 0, x.as<T>(), y.as<T>(), y.count, c,
                  m.mean, m.factor, call.input(2).as<float>());
  });
}

void norm_batch_grad(KernelCall& call) {
  const TensorView g = call.input(0), x = call.input(1);
  const Channels c = checked_channels(call, g.sizes);
  if (x.sizes != g.sizes) refuse("x and y_backprop must have same shape");
  check_vector(call, 2, c.channels, "scale");
  check_vector(call, 3, c.channels, "reserve_space_1 (mean)");
  check_vector(call, 4, c.channels, "reserve_space_2 (variance)");
  Slopes s = {};
  s.epsilon = call.attr_float("epsilon");
  s.share = call.attr_bool("is_training")
                ? 1.0f / static_cast<float>(std::max<std::int64_t>(1, c.elements()))
                : 0.0f;
  const TensorView dx = call.allocate_output(0, g.sizes);
  s.d_scale = call.allocate_output(1, {c.channels}).as<float>();
  s.d_offset = call.allocate_output(2, {c.channels}).as<float>();
  call.allocate_output(3, {0});
  call.allocate_output(4, {0});
  if (c.channels == 0) return;
  const std::int64_t pieces = channel_pieces(c);
  const auto sums = static_cast<std::size_t>(pieces * c.channels) * sizeof(Two);
  auto* memory = static_cast<std::byte*>(
      call.scratch(sums + static_cast<std::size_t>(3 * c.channels) * sizeof(float)));
  Two* const partial = reinterpret_cast<Two*>(memory);
  s.factor = reinterpret_cast<float*>(memory + sums);
  s.shift = s.factor + c.channels;
  s.slope = s.shift + c.channels;
  s.scale = call.input(2).as<float>();
  s.variance = call.input(4).as<float>();
  const float* const mean = call.input(3).as<float>();
  visit_inputs(g.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    channel_sums(GradientTerms<T>{g.as<T>(), x.as<T>(), mean}, c, partial);
    TANDEM_LAUNCH(slopes_kernel, shape_for(c.channels), 0, partial, c, pieces, s);
    if (dx.count == 0) return;
    TANDEM_LAUNCH(gradient_kernel<T>, shape_for(dx.count), 0, g.as<T>(), x.as<T>(), dx.as<T>(),
                  dx.count, c, mean, s.factor, s.shift, s.slope);
  });
}

}  // namespace tandem::cuda
