#include "tandem/kernels/cpu/activation_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/activation_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using D1 = hn::CappedTag<float, 1>;

// y = f(d, x), in vectors and then one by one.
template <class F>
HWY_INLINE void map(const float* x, float* y, std::int64_t n, F f) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
  for (; i < n; ++i) hn::StoreU(f(D1(), hn::LoadU(D1(), x + i)), D1(), y + i);
}

template <class F>
HWY_INLINE void map(const float* g, const float* x, float* y, std::int64_t n, F f) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(f(d, hn::LoadU(d, g + i), hn::LoadU(d, x + i)), d, y + i);
  }
  for (; i < n; ++i) {
    hn::StoreU(f(D1(), hn::LoadU(D1(), g + i), hn::LoadU(D1(), x + i)), D1(), y + i);
  }
}

// Comparisons with NaN are false, so written like this NaN goes through.

void Relu(const float* x, float* y, std::int64_t n, float) {
  map(x, y, n,
      [](auto d, auto v) HWY_ATTR { return hn::IfThenZeroElse(hn::Le(v, hn::Zero(d)), v); });
}

void Relu6(const float* x, float* y, std::int64_t n, float) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR {
    const auto six = hn::Set(d, 6.0f);
    return hn::IfThenZeroElse(hn::Le(v, hn::Zero(d)), hn::IfThenElse(hn::Ge(v, six), six, v));
  });
}

void LeakyRelu(const float* x, float* y, std::int64_t n, float alpha) {
  map(x, y, n, [alpha](auto d, auto v) HWY_ATTR {
    return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), v, hn::Mul(v, hn::Set(d, alpha)));
  });
}

void ReluGrad(const float* g, const float* x, float* y, std::int64_t n, float) {
  map(g, x, y, n, [](auto d, auto u, auto v) HWY_ATTR {
    return hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), u);
  });
}

void Relu6Grad(const float* g, const float* x, float* y, std::int64_t n, float) {
  map(g, x, y, n, [](auto d, auto u, auto v) HWY_ATTR {
    const auto inside = hn::And(hn::Gt(v, hn::Zero(d)), hn::Lt(v, hn::Set(d, 6.0f)));
    return hn::IfThenElseZero(inside, u);
  });
}

void LeakyReluGrad(const float* g, const float* x, float* y, std::int64_t n, float alpha) {
  map(g, x, y, n, [alpha](auto d, auto u, auto v) HWY_ATTR {
    return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), u, hn::Mul(u, hn::Set(d, alpha)));
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(Relu);
HWY_EXPORT(Relu6);
HWY_EXPORT(LeakyRelu);
HWY_EXPORT(ReluGrad);
HWY_EXPORT(Relu6Grad);
HWY_EXPORT(LeakyReluGrad);

void relu_row(const float* x, float* y, std::int64_t n, float alpha) {
  HWY_DYNAMIC_DISPATCH(Relu)(x, y, n, alpha);
}
void relu6_row(const float* x, float* y, std::int64_t n, float alpha) {
  HWY_DYNAMIC_DISPATCH(Relu6)(x, y, n, alpha);
}
void leaky_relu_row(const float* x, float* y, std::int64_t n, float alpha) {
  HWY_DYNAMIC_DISPATCH(LeakyRelu)(x, y, n, alpha);
}
void relu_grad_row(const float* g, const float* x, float* y, std::int64_t n, float alpha) {
  HWY_DYNAMIC_DISPATCH(ReluGrad)(g, x, y, n, alpha);
}
void relu6_grad_row(const float* g, const float* x, float* y, std::int64_t n, float alpha) {
  HWY_DYNAMIC_DISPATCH(Relu6Grad)(g, x, y, n, alpha);
}
void leaky_relu_grad_row(const float* g, const float* x, float* y, std::int64_t n, float alpha) {
  HWY_DYNAMIC_DISPATCH(LeakyReluGrad)(g, x, y, n, alpha);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
