// The optimizers that have one formula for all cases. The arithmetic is that of the CPU's kernels.

#include "tandem/kernels/cuda/training/apply.h"

namespace tandem::cuda {
namespace {

template <class S>
struct GradientDescent {
  static constexpr int kSlots = 0, kGradient = 2;
  S rate;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[1];
  }
  TANDEM_DEVICE void operator()(S& var, S*, S g) const { var = var - g * rate; }
};

template <class S>
struct Momentum {
  static constexpr int kSlots = 1, kGradient = 3;
  bool nesterov;
  S rate, momentum;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[2];
    momentum = in[4];
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[0] = slot[0] * momentum + g;
    var = nesterov ? var - (g * rate + slot[0] * momentum * rate) : var - slot[0] * rate;
  }
};

template <class S>
struct KerasMomentum : Momentum<S> {
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[0] = slot[0] * this->momentum - g * this->rate;
    var = this->nesterov ? var + (slot[0] * this->momentum - g * this->rate) : var + slot[0];
  }
};

template <class S>
struct Adam {
  static constexpr int kSlots = 2, kGradient = 9;
  bool nesterov;
  S rate, beta1, beta2, epsilon;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[5] * std::sqrt(S(1) - in[4]) / (S(1) - in[3]);
    beta1 = in[6];
    beta2 = in[7];
    epsilon = in[8];
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[0] = slot[0] + (g - slot[0]) * (S(1) - beta1);
    slot[1] = slot[1] + (g * g - slot[1]) * (S(1) - beta2);
    const S divisor = std::sqrt(slot[1]) + epsilon;
    const S direction = nesterov ? g * (S(1) - beta1) + slot[0] * beta1 : slot[0];
    var = var - direction * rate / divisor;
  }
};

template <class S>
struct AdamWithAmsgrad {
  static constexpr int kSlots = 3, kGradient = 10;
  S rate, beta1, beta2, epsilon;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[6] * std::sqrt(S(1) - in[5]) / (S(1) - in[4]);
    beta1 = in[7];
    beta2 = in[8];
    epsilon = in[9];
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[0] = slot[0] + (g - slot[0]) * (S(1) - beta1);
    slot[1] = slot[1] + (g * g - slot[1]) * (S(1) - beta2);
    slot[2] = slot[2] < slot[1] ? slot[1] : slot[2];
    var = var - slot[0] * rate / (std::sqrt(slot[2]) + epsilon);
  }
};

template <class S>
struct AdaMax {
  static constexpr int kSlots = 2, kGradient = 8;
  S rate, beta1, beta2, epsilon;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[4] / (S(1) - in[3]);
    beta1 = in[5];
    beta2 = in[6];
    epsilon = in[7];
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[0] = slot[0] + (g - slot[0]) * (S(1) - beta1);
    const S decayed = slot[1] * beta2, size = std::fabs(g);
    slot[1] = decayed < size ? size : decayed;
    var = var - rate * (slot[0] / (slot[1] + epsilon));
  }
};

template <class S>
struct RMSProp {
  static constexpr int kSlots = 2, kGradient = 7;
  S rate, rho, momentum, epsilon;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[3];
    rho = in[4];
    momentum = in[5];
    epsilon = in[6];
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[0] = slot[0] + (g * g - slot[0]) * (S(1) - rho);
    slot[1] = slot[1] * momentum + g * rate / std::sqrt(slot[0] + epsilon);
    var = var - slot[1];
  }
};

template <class S>
struct CenteredRMSProp {
  static constexpr int kSlots = 3, kGradient = 8;
  S rate, rho, momentum, epsilon;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[4];
    rho = in[5];
    momentum = in[6];
    epsilon = in[7];
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[1] = slot[1] + (g * g - slot[1]) * (S(1) - rho);
    slot[0] = slot[0] + (g - slot[0]) * (S(1) - rho);
    const S variance = slot[1] - slot[0] * slot[0] + epsilon;
    slot[2] = slot[2] * momentum + g * rate / std::sqrt(variance);
    var = var - slot[2];
  }
};

template <class S>
struct Adagrad {
  static constexpr int kSlots = 1, kGradient = 3;
  bool update_slots;
  S rate;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[2];
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    if (update_slots) slot[0] = slot[0] + g * g;
    var = var - g * rate / std::sqrt(slot[0]);
  }
};

template <class S>
struct AdagradV2 {
  static constexpr int kSlots = 1, kGradient = 4;
  bool update_slots;
  S rate, epsilon;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[2];
    epsilon = in[3];
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    if (update_slots) slot[0] = slot[0] + g * g;
    var = var - g * rate / (std::sqrt(slot[0]) + epsilon);
  }
};

template <class S>
struct Adadelta {
  static constexpr int kSlots = 2, kGradient = 6;
  S rate, rho, epsilon;
  template <class In>
  TANDEM_DEVICE void load(const In& in) {
    rate = in[3];
    rho = in[4];
    epsilon = in[5];
  }
  TANDEM_DEVICE void operator()(S& var, S* slot, S g) const {
    slot[0] = slot[0] * rho + g * g * (S(1) - rho);
    const S update = std::sqrt(slot[1] + epsilon) / std::sqrt(slot[0] + epsilon) * g;
    var = var - update * rate;
    slot[1] = slot[1] * rho + update * update * (S(1) - rho);
  }
};

}  // namespace

// A kernel for the dense form and, under the name with _rows, one for the form on rows.
#define TANDEM_STEP(NAME, STEP, SET)                                         \
  void NAME(KernelCall& call) {                                              \
    apply_any<STEP>(call, false, [&]([[maybe_unused]] auto& step) { SET; }); \
  }
#define TANDEM_STEP_ON_ROWS(NAME, STEP, SET)                                \
  TANDEM_STEP(NAME, STEP, SET)                                              \
  void NAME##_rows(KernelCall& call) {                                      \
    apply_any<STEP>(call, true, [&]([[maybe_unused]] auto& step) { SET; }); \
  }

TANDEM_STEP(train_gradient_descent, GradientDescent, )
TANDEM_STEP_ON_ROWS(train_momentum, Momentum, step.nesterov = call.attr_bool("use_nesterov"))
TANDEM_STEP_ON_ROWS(train_keras_momentum, KerasMomentum,
                    step.nesterov = call.attr_bool("use_nesterov"))
TANDEM_STEP(train_adam, Adam, step.nesterov = call.attr_bool("use_nesterov"))
TANDEM_STEP(train_amsgrad, AdamWithAmsgrad, )
TANDEM_STEP(train_ada_max, AdaMax, )
TANDEM_STEP_ON_ROWS(train_rms_prop, RMSProp, )
TANDEM_STEP_ON_ROWS(train_centered_rms_prop, CenteredRMSProp, )
TANDEM_STEP_ON_ROWS(train_adagrad, Adagrad, step.update_slots = call.attr_bool("update_slots"))
TANDEM_STEP_ON_ROWS(train_adagrad_v2, AdagradV2, step.update_slots = call.attr_bool("update_slots"))
TANDEM_STEP_ON_ROWS(train_adadelta, Adadelta, )

}  // namespace tandem::cuda
