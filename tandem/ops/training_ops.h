#pragma once

#include "tandem/core/export.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem::training {

// The steps of optimizers: each updates a variable and its slots in one pass over their memory. All
// take scalars of the variable's dtype and a gradient of its shape; anything else throws
// InvalidArgumentError.

/// var -= alpha * delta
TANDEM_EXPORT void apply_gradient_descent(const Variable& var, Tensor alpha, Tensor delta);

/// accum = accum * momentum + grad; var -= lr * accum (Nesterov: var -= lr * (grad + momentum *
/// accum))
TANDEM_EXPORT void apply_momentum(const Variable& var, const Variable& accum, Tensor lr,
                                  Tensor grad, Tensor momentum, bool use_nesterov = false);
/// accum = accum * momentum - lr * grad; var += accum (Nesterov: var += momentum * accum - lr *
/// grad)
TANDEM_EXPORT void apply_keras_momentum(const Variable& var, const Variable& accum, Tensor lr,
                                        Tensor grad, Tensor momentum, bool use_nesterov = false);

struct AdamScalars {
  Tensor beta1_power;  ///< beta1 to the power of the step, the first being 1
  Tensor beta2_power;
  Tensor lr;
  Tensor beta1;
  Tensor beta2;
  Tensor epsilon;
};
/// m += (1 - beta1)(grad - m); v += (1 - beta2)(grad² - v);
/// var -= lr √(1 - beta2_power) / (1 - beta1_power) m / (√v + epsilon)
TANDEM_EXPORT void apply_adam(const Variable& var, const Variable& m, const Variable& v,
                              const AdamScalars& scalars, Tensor grad, bool use_nesterov = false);
/// Like apply_adam, dividing by the largest v so far, which vhat keeps.
TANDEM_EXPORT void apply_adam_with_amsgrad(const Variable& var, const Variable& m,
                                           const Variable& v, const Variable& vhat,
                                           const AdamScalars& scalars, Tensor grad);
/// m += (1 - beta1)(grad - m); v = max(beta2 v, |grad|); var -= lr / (1 - beta1_power) m / (v +
/// epsilon)
TANDEM_EXPORT void apply_ada_max(const Variable& var, const Variable& m, const Variable& v,
                                 Tensor beta1_power, Tensor lr, Tensor beta1, Tensor beta2,
                                 Tensor epsilon, Tensor grad);

/// ms += (1 - rho)(grad² - ms); mom = momentum mom + lr grad / √(ms + epsilon); var -= mom
TANDEM_EXPORT void apply_rms_prop(const Variable& var, const Variable& ms, const Variable& mom,
                                  Tensor lr, Tensor rho, Tensor momentum, Tensor epsilon,
                                  Tensor grad);
/// Like apply_rms_prop with mg the mean gradient and √(ms - mg² + epsilon).
TANDEM_EXPORT void apply_centered_rms_prop(const Variable& var, const Variable& mg,
                                           const Variable& ms, const Variable& mom, Tensor lr,
                                           Tensor rho, Tensor momentum, Tensor epsilon,
                                           Tensor grad);

/// accum += grad² (if update_slots); var -= lr grad / √accum
TANDEM_EXPORT void apply_adagrad(const Variable& var, const Variable& accum, Tensor lr, Tensor grad,
                                 bool update_slots = true);
/// accum += grad² (if update_slots); var -= lr grad / (√accum + epsilon)
TANDEM_EXPORT void apply_adagrad_v2(const Variable& var, const Variable& accum, Tensor lr,
                                    Tensor epsilon, Tensor grad, bool update_slots = true);
/// accum = rho accum + (1 - rho) grad²; update = √(accum_update + epsilon) / √(accum + epsilon)
/// grad; accum_update = rho accum_update + (1 - rho) update²; var -= lr update
TANDEM_EXPORT void apply_adadelta(const Variable& var, const Variable& accum,
                                  const Variable& accum_update, Tensor lr, Tensor rho,
                                  Tensor epsilon, Tensor grad);

struct FtrlScalars {
  Tensor lr;
  Tensor l1;
  Tensor l2;
  Tensor l2_shrinkage;  ///< may stay undefined: none
  Tensor lr_power;
};
/// Follow the regularised leader.
TANDEM_EXPORT void apply_ftrl(const Variable& var, const Variable& accum, const Variable& linear,
                              const FtrlScalars& scalars, Tensor grad,
                              bool multiply_linear_by_lr = false);

}  // namespace tandem::training
