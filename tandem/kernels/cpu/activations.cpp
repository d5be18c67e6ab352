// Functions of single elements that networks put between layers, and their gradients.

#include "tandem/kernels/cpu/activations.h"

#include <cmath>
#include <limits>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/number_types.h"

namespace tandem::cpu {
namespace {

constexpr double kCheap = 0.5;  // ns an element
constexpr double kExponential = 8;

template <class T, class F>
void map_elements(KernelContext& c, double cost, F f) {
  Array& out = c.reuse_or_allocate_output(0, 0, c.input(0).shape());
  const T* x = c.input(0).data<T>();
  T* y = out.data<T>();
  c.intra_op().parallel_for(out.num_elements(), cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(f(widen(x[i])));
  });
}

// f(gradient, feature)
template <class T, class F>
void map_pairs(KernelContext& c, double cost, F f) {
  Array& out = gradient_output(c);
  const T* gradients = c.input(0).data<T>();
  const T* features = c.input(1).data<T>();
  T* y = out.data<T>();
  c.intra_op().parallel_for(out.num_elements(), cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = static_cast<T>(f(widen(gradients[i]), widen(features[i])));
    }
  });
}

// ---- Relu, Relu6, LeakyRelu ----

void relu(KernelContext& c) {
  with_real(c.input(0).dtype(), [&]<class T>() {
    // A comparison with NaN is false, so NaN goes through.
    map_elements<T>(c, kCheap, [](Wide<T> x) { return x <= 0 ? Wide<T>(0) : x; });
  });
}

void relu_grad(KernelContext& c) {
  with_real(c.input(0).dtype(), [&]<class T>() {
    map_pairs<T>(c, kCheap, [](Wide<T> g, Wide<T> x) { return x > 0 ? g : Wide<T>(0); });
  });
}

void relu6(KernelContext& c) {
  with_real(c.input(0).dtype(), [&]<class T>() {
    map_elements<T>(c, kCheap, [](Wide<T> x) {
      return x <= 0 ? Wide<T>(0) : x >= 6 ? Wide<T>(6) : x;
    });
  });
}

void relu6_grad(KernelContext& c) {
  with_real(c.input(0).dtype(), [&]<class T>() {
    map_pairs<T>(c, kCheap, [](Wide<T> g, Wide<T> x) { return x > 0 && x < 6 ? g : Wide<T>(0); });
  });
}

void leaky_relu(KernelContext& c) {
  with_floating(c.input(0).dtype(), [&]<class T>() {
    const auto alpha = static_cast<Wide<T>>(c.attr<float>("alpha"));
    map_elements<T>(c, kCheap, [alpha](Wide<T> x) { return x > 0 ? x : x * alpha; });
  });
}

void leaky_relu_grad(KernelContext& c) {
  with_floating(c.input(0).dtype(), [&]<class T>() {
    const auto alpha = static_cast<Wide<T>>(c.attr<float>("alpha"));
    map_pairs<T>(c, kCheap, [alpha](Wide<T> g, Wide<T> x) { return x > 0 ? g : g * alpha; });
  });
}

// ---- Elu, Selu ----

// Klambauer et al. 2017, equation 14.
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

void elu(KernelContext& c) {
  with_floating(c.input(0).dtype(), [&]<class T>() {
    map_elements<T>(c, kExponential, [](Wide<T> x) { return x < 0 ? std::expm1(x) : x; });
  });
}

void elu_grad(KernelContext& c) {
  with_floating(c.input(0).dtype(), [&]<class T>() {
    map_pairs<T>(c, kCheap, [](Wide<T> g, Wide<T> y) { return y < 0 ? (y + 1) * g : g; });
  });
}

void selu(KernelContext& c) {
  with_floating(c.input(0).dtype(), [&]<class T>() {
    constexpr auto kScale = static_cast<Wide<T>>(kSeluScale);
    constexpr auto kScaleAlpha = static_cast<Wide<T>>(kSeluScaleAlpha);
    map_elements<T>(c, kExponential,
                    [](Wide<T> x) { return x < 0 ? kScaleAlpha * std::expm1(x) : kScale * x; });
  });
}

void selu_grad(KernelContext& c) {
  with_floating(c.input(0).dtype(), [&]<class T>() {
    constexpr auto kScale = static_cast<Wide<T>>(kSeluScale);
    constexpr auto kScaleAlpha = static_cast<Wide<T>>(kSeluScaleAlpha);
    map_pairs<T>(c, kCheap,
                 [](Wide<T> g, Wide<T> y) { return y < 0 ? g * (y + kScaleAlpha) : g * kScale; });
  });
}

// ---- Softplus, Softsign ----

void softplus(KernelContext& c) {
  with_floating(c.input(0).dtype(), [&]<class T>() {
    // Beyond +-threshold, log(1 + exp(x)) is x or exp(x) to the last bit.
    static const Wide<T> threshold = -std::log(std::numeric_limits<Wide<T>>::epsilon()) - 2;
    map_elements<T>(c, 2 * kExponential, [](Wide<T> x) {
      if (x > threshold) return x;
      const Wide<T> e = std::exp(x);
      return x < -threshold ? e : std::log1p(e);
    });
  });
}

void softplus_grad(KernelContext& c) {
  with_floating(c.input(0).dtype(), [&]<class T>() {
    map_pairs<T>(c, kExponential, [](Wide<T> g, Wide<T> x) { return g / (std::exp(-x) + 1); });
  });
}

void softsign(KernelContext& c) {
  with_floating(c.input(0).dtype(), [&]<class T>() {
    map_elements<T>(c, 1.0, [](Wide<T> x) { return x / (std::abs(x) + 1); });
  });
}

void softsign_grad(KernelContext& c) {
  with_floating(c.input(0).dtype(), [&]<class T>() {
    map_pairs<T>(c, 1.0, [](Wide<T> g, Wide<T> x) {
      const Wide<T> d = std::abs(x) + 1;
      return g / (d * d);
    });
  });
}

const KernelRegistration kRelu{{.op = "Relu", .types = {{"T", kRealTypes}}, .run = relu}};
const KernelRegistration kReluGrad{
    {.op = "ReluGrad", .types = {{"T", kRealTypes}}, .run = relu_grad}};
const KernelRegistration kRelu6{{.op = "Relu6", .types = {{"T", kRealTypes}}, .run = relu6}};
const KernelRegistration kRelu6Grad{
    {.op = "Relu6Grad", .types = {{"T", kRealTypes}}, .run = relu6_grad}};
const KernelRegistration kLeakyRelu{
    {.op = "LeakyRelu", .types = {{"T", kFloatTypes}}, .run = leaky_relu}};
const KernelRegistration kLeakyReluGrad{
    {.op = "LeakyReluGrad", .types = {{"T", kFloatTypes}}, .run = leaky_relu_grad}};
const KernelRegistration kElu{{.op = "Elu", .types = {{"T", kFloatTypes}}, .run = elu}};
const KernelRegistration kEluGrad{
    {.op = "EluGrad", .types = {{"T", kFloatTypes}}, .run = elu_grad}};
const KernelRegistration kSelu{{.op = "Selu", .types = {{"T", kFloatTypes}}, .run = selu}};
const KernelRegistration kSeluGrad{
    {.op = "SeluGrad", .types = {{"T", kFloatTypes}}, .run = selu_grad}};
const KernelRegistration kSoftplus{
    {.op = "Softplus", .types = {{"T", kFloatTypes}}, .run = softplus}};
const KernelRegistration kSoftplusGrad{
    {.op = "SoftplusGrad", .types = {{"T", kFloatTypes}}, .run = softplus_grad}};
const KernelRegistration kSoftsign{
    {.op = "Softsign", .types = {{"T", kFloatTypes}}, .run = softsign}};
const KernelRegistration kSoftsignGrad{
    {.op = "SoftsignGrad", .types = {{"T", kFloatTypes}}, .run = softsign_grad}};

}  // namespace
}  // namespace tandem::cpu
