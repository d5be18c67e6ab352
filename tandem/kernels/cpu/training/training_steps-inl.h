// The arithmetic of the optimizers, once: N is a float, a double, a complex number, or a vector of
// floats with the same operators and functions, which can be made from the step's scalars. A step
// gets an element of the variable, those of its slots and the gradient's, and changes the first
// two. Compiled once for each kind of processor.

#include <cmath>
#include <complex>

#include <hwy/highway.h>

#include "tandem/kernels/cpu/training/training_steps.h"

#if defined(TANDEM_KERNELS_CPU_TRAINING_STEPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_KERNELS_CPU_TRAINING_STEPS_INL_H
#undef TANDEM_KERNELS_CPU_TRAINING_STEPS_INL_H
#else
#define TANDEM_KERNELS_CPU_TRAINING_STEPS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {

HWY_INLINE float square_root(float x) { return std::sqrt(x); }
HWY_INLINE double square_root(double x) { return std::sqrt(x); }
template <class T>
HWY_INLINE std::complex<T> square_root(std::complex<T> x) {
  return std::sqrt(x);
}
HWY_INLINE float larger(float a, float b) { return a < b ? b : a; }
HWY_INLINE double larger(double a, double b) { return a < b ? b : a; }
HWY_INLINE float magnitude(float x) { return std::abs(x); }
HWY_INLINE double magnitude(double x) { return std::abs(x); }

template <class N, class S>
HWY_INLINE void step(const training::GradientDescent<S>& s, N& var, N*, N g) {
  var = var - g * N(s.rate);
}

template <class N, class S>
HWY_INLINE void step(const training::Momentum<S>& s, N& var, N* slot, N g) {
  slot[0] = slot[0] * N(s.momentum) + g;
  if (s.nesterov) {
    var = var - (g * N(s.rate) + slot[0] * N(s.momentum) * N(s.rate));
  } else {
    var = var - slot[0] * N(s.rate);
  }
}

template <class N, class S>
HWY_INLINE void step(const training::KerasMomentum<S>& s, N& var, N* slot, N g) {
  slot[0] = slot[0] * N(s.momentum) - g * N(s.rate);
  if (s.nesterov) {
    var = var + (slot[0] * N(s.momentum) - g * N(s.rate));
  } else {
    var = var + slot[0];
  }
}

template <class N, class S>
HWY_INLINE void step(const training::Adam<S>& s, N& var, N* slot, N g) {
  slot[0] = slot[0] + (g - slot[0]) * N(S(1) - s.beta1);
  slot[1] = slot[1] + (g * g - slot[1]) * N(S(1) - s.beta2);
  const N divisor = square_root(slot[1]) + N(s.epsilon);
  if (s.nesterov) {
    var = var - (g * N(S(1) - s.beta1) + slot[0] * N(s.beta1)) * N(s.alpha) / divisor;
  } else {
    var = var - slot[0] * N(s.alpha) / divisor;
  }
}

template <class N, class S>
HWY_INLINE void step(const training::AdamWithAmsgrad<S>& s, N& var, N* slot, N g) {
  slot[0] = slot[0] + (g - slot[0]) * N(S(1) - s.beta1);
  slot[1] = slot[1] + (g * g - slot[1]) * N(S(1) - s.beta2);
  slot[2] = larger(slot[2], slot[1]);
  var = var - slot[0] * N(s.alpha) / (square_root(slot[2]) + N(s.epsilon));
}

template <class N, class S>
HWY_INLINE void step(const training::AdaMax<S>& s, N& var, N* slot, N g) {
  slot[0] = slot[0] + (g - slot[0]) * N(S(1) - s.beta1);
  slot[1] = larger(slot[1] * N(s.beta2), magnitude(g));
  var = var - N(s.alpha) * (slot[0] / (slot[1] + N(s.epsilon)));
}

template <class N, class S>
HWY_INLINE void step(const training::RMSProp<S>& s, N& var, N* slot, N g) {
  slot[0] = slot[0] + (g * g - slot[0]) * N(S(1) - s.rho);
  slot[1] = slot[1] * N(s.momentum) + g * N(s.rate) / square_root(slot[0] + N(s.epsilon));
  var = var - slot[1];
}

template <class N, class S>
HWY_INLINE void step(const training::CenteredRMSProp<S>& s, N& var, N* slot, N g) {
  slot[1] = slot[1] + (g * g - slot[1]) * N(S(1) - s.rho);
  slot[0] = slot[0] + (g - slot[0]) * N(S(1) - s.rho);
  const N variance = slot[1] - slot[0] * slot[0] + N(s.epsilon);
  slot[2] = slot[2] * N(s.momentum) + g * N(s.rate) / square_root(variance);
  var = var - slot[2];
}

template <class N, class S>
HWY_INLINE void step(const training::Adagrad<S>& s, N& var, N* slot, N g) {
  if (s.update_slots) slot[0] = slot[0] + g * g;
  var = var - g * N(s.rate) / square_root(slot[0]);
}

template <class N, class S>
HWY_INLINE void step(const training::AdagradV2<S>& s, N& var, N* slot, N g) {
  if (s.update_slots) slot[0] = slot[0] + g * g;
  var = var - g * N(s.rate) / (square_root(slot[0]) + N(s.epsilon));
}

template <class N, class S>
HWY_INLINE void step(const training::Adadelta<S>& s, N& var, N* slot, N g) {
  slot[0] = slot[0] * N(s.rho) + g * g * N(S(1) - s.rho);
  const N update = square_root(slot[1] + N(s.epsilon)) / square_root(slot[0] + N(s.epsilon)) * g;
  var = var - update * N(s.rate);
  slot[1] = slot[1] * N(s.rho) + update * update * N(S(1) - s.rho);
}

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TANDEM_KERNELS_CPU_TRAINING_STEPS_INL_H
