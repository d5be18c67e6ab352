#pragma once

// The scalars of each optimizer's step. S is float or double; `kSlots` is the number of arrays
// beside the variable's that the step changes.

namespace tandem::cpu::training {

template <class S>
struct GradientDescent {
  static constexpr int kSlots = 0;
  S rate;
};

template <class S>
struct Momentum {
  static constexpr int kSlots = 1;
  S rate, momentum;
  bool nesterov;
};

template <class S>
struct KerasMomentum {
  static constexpr int kSlots = 1;
  S rate, momentum;
  bool nesterov;
};

template <class S>
struct Adam {
  static constexpr int kSlots = 2;
  S alpha;  // rate * sqrt(1 - beta2^t) / (1 - beta1^t)
  S beta1, beta2, epsilon;
  bool nesterov;
};

template <class S>
struct AdamWithAmsgrad {
  static constexpr int kSlots = 3;
  S alpha, beta1, beta2, epsilon;
};

template <class S>
struct AdaMax {
  static constexpr int kSlots = 2;
  S alpha;  // rate / (1 - beta1^t)
  S beta1, beta2, epsilon;
};

template <class S>
struct RMSProp {
  static constexpr int kSlots = 2;  // mean square, momentum
  S rate, rho, momentum, epsilon;
};

template <class S>
struct CenteredRMSProp {
  static constexpr int kSlots = 3;  // mean gradient, mean square, momentum
  S rate, rho, momentum, epsilon;
};

template <class S>
struct Adagrad {
  static constexpr int kSlots = 1;
  S rate;
  bool update_slots;
};

template <class S>
struct AdagradV2 {
  static constexpr int kSlots = 1;
  S rate, epsilon;
  bool update_slots;
};

template <class S>
struct Adadelta {
  static constexpr int kSlots = 2;  // mean square gradient, mean square update
  S rate, rho, epsilon;
};

}  // namespace tandem::cpu::training
