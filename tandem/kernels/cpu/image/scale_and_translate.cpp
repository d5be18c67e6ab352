// ScaleAndTranslate: resampling with a kernel of choice, and its gradient.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/image/resize.h"

namespace tandem::cpu {
namespace {

constexpr float kPi = 3.14159265358979f;

float lanczos(float x, float radius) {
  if (x > radius) return 0;
  if (std::abs(x) <= 1e-3f) return 1;
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) / (kPi * kPi * x * x);
}

/// A function of the distance, 0 from `radius` on.
struct Kernel {
  float radius;
  float (*at)(float x);
};

Kernel kernel_named(const std::string& name) {
  if (name == "lanczos1") return {1, [](float x) { return lanczos(x, 1); }};
  if (name == "lanczos3") return {3, [](float x) { return lanczos(x, 3); }};
  if (name == "lanczos5") return {5, [](float x) { return lanczos(x, 5); }};
  if (name == "gaussian") {
    return {1.5f,
            [](float x) { return x >= 1.5f ? 0.0f : std::exp(-x * x / (2.0f * 0.5f * 0.5f)); }};
  }
  if (name == "box") {
    return {1, [](float x) { return x < 0.5f ? 1.0f : x == 0.5f ? 0.5f : 0.0f; }};
  }
  if (name == "triangle") return {1, [](float x) { return x < 1 ? 1 - x : 0.0f; }};
  if (name == "keyscubic") {
    return {2, [](float x) {
              if (x >= 2) return 0.0f;
              if (x >= 1) return ((-0.5f * x + 2.5f) * x - 4.0f) * x + 2.0f;
              return (1.5f * x - 2.5f) * x * x + 1.0f;
            }};
  }
  if (name == "mitchellcubic") {
    return {2, [](float x) {
              if (x >= 2) return 0.0f;
              if (x >= 1) {
                return ((-7.0f / 18.0f * x + 2.0f) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f;
              }
              return (7.0f / 6.0f * x - 2.0f) * x * x + 8.0f / 9.0f;
            }};
  }
  throw InvalidArgumentError(cat("Unknown kernel type: ", name));
}

Taps spans(const Kernel& kernel, std::int64_t in, std::int64_t out, float scale, float translate,
           bool antialias) {
  const float inverse = 1.0f / scale, shift = -inverse * translate;
  const float width = antialias ? std::max(inverse, 1.0f) : 1.0f;
  const float reach = kernel.radius * width;
  const auto size =
      static_cast<std::int64_t>(std::min(2.0 * std::ceil(reach) + 1.0, static_cast<double>(in)));
  Taps taps(out, std::max<std::int64_t>(size, 1));
  for (std::int64_t i = 0; i < out; ++i) {
    const float sample = (static_cast<float>(i) + 0.5f) * inverse + shift;
    if (!(sample >= 0 && sample <= static_cast<float>(in))) continue;  // outside: no weights
    const auto last = static_cast<float>(in - 1);
    const auto begin =
        static_cast<std::int64_t>(std::clamp(std::ceil(sample - reach - 0.5f), 0.0f, last));
    const auto end =
        static_cast<std::int64_t>(std::clamp(std::floor(sample + reach - 0.5f), 0.0f, last)) + 1;
    float sum = 0;
    for (std::int64_t t = 0; t < taps.count; ++t) {
      const std::int64_t k = std::min(begin + t, end - 1);
      taps.index_at(i, t) = k;
      if (begin + t >= end) continue;
      const float distance = static_cast<float>(k) + 0.5f - sample;
      const float weight = kernel.at(std::abs(distance / width));
      taps.weight_at(i, t) = weight;
      sum += weight;
    }
    if (std::abs(sum) >= 1000.0f * std::numeric_limits<float>::min()) {
      for (std::int64_t t = 0; t < taps.count; ++t) taps.weight_at(i, t) *= 1.0f / sum;
    } else {
      for (std::int64_t t = 0; t < taps.count; ++t) taps.weight_at(i, t) = 0;
    }
  }
  return taps;
}

// Two numbers of input i.
std::pair<float, float> two_floats(const KernelContext& c, int i, const char* name) {
  const Array& in = c.input(i);
  if (in.rank() != 1 || in.num_elements() != 2) {
    throw InvalidArgumentError(
        cat(name, " must be 1-dimensional with two elements, but has shape ", in.shape()));
  }
  return {in.data<float>()[0], in.data<float>()[1]};
}

struct Axes {
  Taps y, x;
};

Axes axes(const KernelContext& c, const Resize& r, int scale_input) {
  const Kernel kernel = kernel_named(c.attr<std::string>("kernel_type"));
  const bool antialias = c.attr<bool>("antialias");
  const auto [row_scale, column_scale] = two_floats(c, scale_input, "scale");
  const auto [down, right] = two_floats(c, scale_input + 1, "translation");
  if (!(row_scale > 0) || !(column_scale > 0)) {
    throw InvalidArgumentError(
        cat("Scale must be greater than zero, but is ", row_scale, " and ", column_scale));
  }
  return {spans(kernel, r.in_height, r.out_height, row_scale, down, antialias),
          spans(kernel, r.in_width, r.out_width, column_scale, right, antialias)};
}

void scale_and_translate(KernelContext& c) {
  const Resize r = resize_case(c);
  const Axes a = axes(c, r, 2);
  Array& out = c.allocate_output(0, r.out_shape());
  if (out.num_elements() == 0) return;
  resample(c, r, a.y, a.x, Mix::kWeights, c.input(0), out.data<float>());
}

void scale_and_translate_grad(KernelContext& c) {
  const Resize r = resize_grad_case(c.input(0).shape(), c.input(1).shape());
  const Axes a = axes(c, r, 2);
  Array& out = c.allocate_output(0, r.in_shape());
  if (out.num_elements() == 0) return;
  resample_transposed(c, r, a.y, a.x, c.input(0), out);
}

const KernelRegistration kForward{
    {.op = "ScaleAndTranslate",
     .types = {{"T", kFloatTypes | DTypeSet{DType::kInt8, DType::kUint8, DType::kInt16,
                                            DType::kUint16, DType::kInt32, DType::kInt64}}},
     .run = scale_and_translate}};
const KernelRegistration kBackward{{.op = "ScaleAndTranslateGrad",
                                    .types = {{"T", {DType::kFloat}}},
                                    .run = scale_and_translate_grad}};

}  // namespace
}  // namespace tandem::cpu
