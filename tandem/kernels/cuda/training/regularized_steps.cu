// The optimizers that draw weights towards zero, and those that go by signs.

#include "tandem/kernels/cuda/training/apply.h"

namespace tandem::cuda {
namespace {

template <class S>
TANDEM_DEVICE S sign(S x) {
  if (x != x) return x;
  return static_cast<S>((S(0) < x ? 1 : 0) - (x < S(0) ? 1 : 0));
}
template <class S>
TANDEM_DEVICE S positive(S x) {
  return x < S(0) ? S(0) : x;
}

// What is left of `x` after it was drawn towards zero by l1 and l2, for a step of size `rate`.
template <class S>
TANDEM_DEVICE S proximal(S x, S rate, S l1, S l2) {
  const S scale = S(1) + l2 * rate;
  if (l1 > S(0)) return sign(x) * positive(std::fabs(x) - rate * l1) / scale;
  return x / scale;
}

template <class S, bool kShrinks, bool kRows>
struct FtrlOf {
  static constexpr int kSlots = 2, kGradient = 3;
  bool by_rate;
  S rate, l1, l2, shrinkage, power;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[4];
    l1 = in[5];
    l2 = in[6];
    shrinkage = kShrinks ? in[7] : S(0);
    power = in[kShrinks ? 8 : 7];
  }
  TANDEM_DEVICE S scaled(S accum) const {
    return power == S(-0.5) ? std::sqrt(accum) : std::pow(accum, -power);
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    const S next = slot[0] + g * g;
    const S shrunk = g + S(2) * shrinkage * var;
    const S sigma = scaled(next) - scaled(slot[0]);
    const S weight = by_rate ? l1 * rate : l1;
    S quadratic;
    S& linear = slot[1];
    if (by_rate) {
      linear += shrunk * rate - sigma * var;
      quadratic = scaled(next) + S(2) * l2 * rate;
    } else {
      linear += shrunk - sigma / rate * var;
      quadratic = scaled(next) / rate + S(2) * l2;
    }
    // Equal but for NaN, which TensorFlow turns into 0 in the dense form alone.
    if (kRows) {
      const S clamped = linear < -weight ? -weight : (weight < linear ? weight : linear);
      var = (clamped - linear) / quadratic;
    } else {
      var = std::fabs(linear) > weight ? (weight * sign(linear) - linear) / quadratic : S(0);
    }
    slot[0] = next;
  }
};
template <class S>
using Ftrl = FtrlOf<S, false, false>;
template <class S>
using FtrlV2 = FtrlOf<S, true, false>;
template <class S>
using FtrlRows = FtrlOf<S, false, true>;
template <class S>
using FtrlV2Rows = FtrlOf<S, true, true>;

template <class S>
struct ProximalGradientDescent {
  static constexpr int kSlots = 0, kGradient = 4;
  S rate, l1, l2;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[1];
    l1 = in[2];
    l2 = in[3];
  }
  TANDEM_DEVICE void operator()(S& var, S*, S g) const {
    var = proximal(var - rate * g, rate, l1, l2);
  }
};

template <class S>
struct ProximalAdagrad {
  static constexpr int kSlots = 1, kGradient = 5;
  S rate, l1, l2;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[2];
    l1 = in[3];
    l2 = in[4];
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[0] += g * g;
    const S now = rate / std::sqrt(slot[0]);
    var = proximal(var - now * g, now, l1, l2);
  }
};

template <class S, bool kRows>
struct AdagradDAOf {
  static constexpr int kSlots = 2, kGradient = 3;  // sums of gradients and of their squares
  S rate, l1, l2, steps;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[4];
    l1 = in[5];
    l2 = in[6];
    steps = static_cast<S>(in.integer(7));
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[0] += g;
    slot[1] += g * g;
    const S sum = slot[0];
    // Equal but before the first step, where TensorFlow's form on rows is NaN.
    if (kRows) {
      const S left = l1 > S(0) ? sign(sum) * positive(std::fabs(sum) / steps - l1) : sum / steps;
      var = -left / (l2 + std::sqrt(slot[1]) / (steps * rate));
    } else {
      const S left = l1 > S(0) ? sign(sum) * positive(std::fabs(sum) - l1 * steps) : sum;
      var = -rate * left / (l2 * steps * rate + std::sqrt(slot[1]));
    }
  }
};
template <class S>
using AdagradDA = AdagradDAOf<S, false>;
template <class S>
using AdagradDARows = AdagradDAOf<S, true>;

template <class S>
struct AddSign {
  static constexpr int kSlots = 1, kGradient = 6;
  S rate, alpha, decay, beta;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[2];
    alpha = in[3];
    decay = in[4];
    beta = in[5];
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[0] = slot[0] * beta + g * (S(1) - beta);
    var -= rate * (alpha + decay * sign(g) * sign(slot[0])) * g;
  }
};

template <class S>
struct PowerSign : AddSign<S> {  // alpha is the logarithm of the base
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[0] = slot[0] * this->beta + g * (S(1) - this->beta);
    var -= this->rate * std::exp(this->alpha * this->decay * sign(g) * sign(slot[0])) * g;
  }
};

}  // namespace

#define TANDEM_STEP(NAME, STEP, ROWS)                                \
  void NAME(KernelCall& call) {                                      \
    apply_any<STEP>(call, ROWS, []([[maybe_unused]] auto& step) {}); \
  }
#define TANDEM_FTRL(NAME, STEP, ROWS)                                                             \
  void NAME(KernelCall& call) {                                                                   \
    apply_any<STEP>(call, ROWS,                                                                   \
                    [&](auto& step) { step.by_rate = call.attr_bool("multiply_linear_by_lr"); }); \
  }

TANDEM_FTRL(train_ftrl, Ftrl, false)
TANDEM_FTRL(train_ftrl_v2, FtrlV2, false)
TANDEM_FTRL(train_ftrl_rows, FtrlRows, true)
TANDEM_FTRL(train_ftrl_v2_rows, FtrlV2Rows, true)
TANDEM_STEP(train_proximal_gradient_descent, ProximalGradientDescent, false)
TANDEM_STEP(train_proximal_gradient_descent_rows, ProximalGradientDescent, true)
TANDEM_STEP(train_proximal_adagrad, ProximalAdagrad, false)
TANDEM_STEP(train_proximal_adagrad_rows, ProximalAdagrad, true)
TANDEM_STEP(train_adagrad_da, AdagradDA, false)
TANDEM_STEP(train_adagrad_da_rows, AdagradDARows, true)
TANDEM_STEP(train_add_sign, AddSign, false)
TANDEM_STEP(train_power_sign, PowerSign, false)

}  // namespace tandem::cuda
