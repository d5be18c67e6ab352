// Optimizer steps on floats by Highway: one loop for all of them, compiled for each kind of
// processor.

#include "tandem/kernels/cpu/training/training_float.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/training/training_float.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/training/training_steps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using Vec = hn::Vec<D>;

// A vector with the operators that the steps are written in.
struct V {
  Vec v;
  HWY_INLINE V() = default;
  HWY_INLINE V(Vec vector) : v(vector) {}  // NOLINT: implicit
  HWY_INLINE explicit V(float scalar) : v(hn::Set(D(), scalar)) {}
  friend HWY_INLINE V operator+(V a, V b) { return hn::Add(a.v, b.v); }
  friend HWY_INLINE V operator-(V a, V b) { return hn::Sub(a.v, b.v); }
  friend HWY_INLINE V operator*(V a, V b) { return hn::Mul(a.v, b.v); }
  friend HWY_INLINE V operator/(V a, V b) { return hn::Div(a.v, b.v); }
  friend HWY_INLINE V square_root(V a) { return hn::Sqrt(a.v); }
  friend HWY_INLINE V larger(V a, V b) { return hn::Max(a.v, b.v); }
  friend HWY_INLINE V magnitude(V a) { return hn::Abs(a.v); }
};

template <class Step>
HWY_INLINE void one_vector(const Step& scalars, float* var, float* const* slots, const float* grad,
                           std::int64_t i) {
  constexpr int kSlots = Step::kSlots;
  const D d;
  V w = hn::LoadU(d, var + i);
  V s[kSlots + 1];
  for (int k = 0; k < kSlots; ++k) s[k] = hn::LoadU(d, slots[k] + i);
  step(scalars, w, s, V(hn::LoadU(d, grad + i)));
  hn::StoreU(w.v, d, var + i);
  for (int k = 0; k < kSlots; ++k) hn::StoreU(s[k].v, d, slots[k] + i);
}

// `scalars` and the addresses in `slots` are copies, so that stores to the arrays cannot change
// them and they stay in registers.
template <class Step>
HWY_INLINE void run(Step scalars, float* var, float* const* given_slots, const float* grad,
                    std::int64_t begin, std::int64_t end) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  float* slots[Step::kSlots + 1];
  for (int k = 0; k < Step::kSlots; ++k) slots[k] = given_slots[k];
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes) one_vector(scalars, var, slots, grad, i);
  if (i == end) return;
  // The rest through a vector of its own, so that every element sees the same instructions.
  constexpr int kSlots = Step::kSlots;
  constexpr std::int64_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);
  float padded[kSlots + 2][kMaxLanes] = {};
  float* rest_slots[kSlots + 1];
  for (std::int64_t k = 0; k < end - i; ++k) {
    padded[0][k] = var[i + k];
    padded[1][k] = grad[i + k];
    for (int s = 0; s < kSlots; ++s) padded[s + 2][k] = slots[s][i + k];
  }
  for (int s = 0; s < kSlots; ++s) rest_slots[s] = padded[s + 2];
  one_vector(scalars, padded[0], rest_slots, padded[1], 0);
  for (std::int64_t k = 0; k < end - i; ++k) {
    var[i + k] = padded[0][k];
    for (int s = 0; s < kSlots; ++s) slots[s][i + k] = padded[s + 2][k];
  }
}

}  // namespace

#define TANDEM_DEFINE_STEP(STEP)                                                      \
  void run_##STEP(const training::STEP<float>& step, float* var, float* const* slots, \
                  const float* grad, std::int64_t begin, std::int64_t end) {          \
    run(step, var, slots, grad, begin, end);                                          \
  }
TANDEM_TRAINING_STEPS(TANDEM_DEFINE_STEP)
#undef TANDEM_DEFINE_STEP

}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

#define TANDEM_DISPATCH_STEP(STEP)                                                        \
  HWY_EXPORT(run_##STEP);                                                                 \
  void run_float_step(const training::STEP<float>& step, float* var, float* const* slots, \
                      const float* grad, std::int64_t begin, std::int64_t end) {          \
    HWY_DYNAMIC_DISPATCH(run_##STEP)(step, var, slots, grad, begin, end);                 \
  }
TANDEM_TRAINING_STEPS(TANDEM_DISPATCH_STEP)
#undef TANDEM_DISPATCH_STEP

}  // namespace tandem::cpu
#endif  // HWY_ONCE
