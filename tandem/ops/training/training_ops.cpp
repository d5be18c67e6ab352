#include "tandem/ops/training_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

// All inputs but handles and the gradient are scalars.
void training_shape(InferenceContext& c) {
  const auto& args = c.op().inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const std::string& name = args[static_cast<std::size_t>(i)].name;
    if (name != "grad" && name != "delta") c.require_rank(i, 0);
  }
}

// Bits of the first n inputs: the handles, which are host values.
constexpr OpTraits updates(int n) {
  return OpTraits{.stateful = true, .host_inputs = (1u << n) - 1};
}

constexpr const char* kAttrs = "T: numbers; use_locking: bool = false";
constexpr const char* kNesterovAttrs =
    "T: numbers; use_locking: bool = false; use_nesterov: bool = false";
constexpr const char* kSlotAttrs =
    "T: numbers; use_locking: bool = false; update_slots: bool = true";
constexpr const char* kFtrlAttrs =
    "T: numbers; use_locking: bool = false; multiply_linear_by_lr: bool = false";

const OpRegistration kGradientDescent{{.name = "ResourceApplyGradientDescent",
                                       .inputs = "var: resource, alpha: T, delta: T",
                                       .attrs = kAttrs,
                                       .shape = training_shape,
                                       .traits = updates(1),
                                       .doc = "var -= alpha * delta"}};

const OpRegistration kMomentum{
    {.name = "ResourceApplyMomentum",
     .inputs = "var: resource, accum: resource, lr: T, grad: T, momentum: T",
     .attrs = kNesterovAttrs,
     .shape = training_shape,
     .traits = updates(2),
     .doc = "accum = accum * momentum + grad; var -= lr * accum"}};

const OpRegistration kKerasMomentum{
    {.name = "ResourceApplyKerasMomentum",
     .inputs = "var: resource, accum: resource, lr: T, grad: T, momentum: T",
     .attrs = kNesterovAttrs,
     .shape = training_shape,
     .traits = updates(2),
     .doc = "accum = accum * momentum - lr * grad; var += accum"}};

const OpRegistration kAdam{
    {.name = "ResourceApplyAdam",
     .inputs = "var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, "
               "beta1: T, beta2: T, epsilon: T, grad: T",
     .attrs = kNesterovAttrs,
     .shape = training_shape,
     .traits = updates(3),
     .doc = "The Adam step on var and its moments m and v."}};

const OpRegistration kAdamWithAmsgrad{
    {.name = "ResourceApplyAdamWithAmsgrad",
     .inputs = "var: resource, m: resource, v: resource, vhat: resource, beta1_power: T, "
               "beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T",
     .attrs = kAttrs,
     .shape = training_shape,
     .traits = updates(4),
     .doc = "The Adam step with the largest second moment so far in vhat."}};

const OpRegistration kAdaMax{
    {.name = "ResourceApplyAdaMax",
     .inputs =
         "var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T, beta2: T, "
         "epsilon: T, grad: T",
     .attrs = kAttrs,
     .shape = training_shape,
     .traits = updates(3),
     .doc = "The Adam step with the infinity norm."}};

const OpRegistration kRMSProp{
    {.name = "ResourceApplyRMSProp",
     .inputs =
         "var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, "
         "grad: T",
     .attrs = kAttrs,
     .shape = training_shape,
     .traits = updates(3),
     .doc = "ms += (1 - rho)(grad^2 - ms); mom = momentum * mom + lr * grad / sqrt(ms + epsilon); "
            "var -= mom"}};

const OpRegistration kCenteredRMSProp{
    {.name = "ResourceApplyCenteredRMSProp",
     .inputs = "var: resource, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: "
               "T, epsilon: T, grad: T",
     .attrs = kAttrs,
     .shape = training_shape,
     .traits = updates(4),
     .doc = "As ResourceApplyRMSProp, with the mean gradient mg taken off the mean square."}};

const OpRegistration kAdagrad{{.name = "ResourceApplyAdagrad",
                               .inputs = "var: resource, accum: resource, lr: T, grad: T",
                               .attrs = kSlotAttrs,
                               .shape = training_shape,
                               .traits = updates(2),
                               .doc = "accum += grad^2; var -= lr * grad / sqrt(accum)"}};

const OpRegistration kAdagradV2{
    {.name = "ResourceApplyAdagradV2",
     .inputs = "var: resource, accum: resource, lr: T, epsilon: T, grad: T",
     .attrs = kSlotAttrs,
     .shape = training_shape,
     .traits = updates(2),
     .doc = "accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)"}};

const OpRegistration kAdadelta{
    {.name = "ResourceApplyAdadelta",
     .inputs = "var: resource, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, "
               "grad: T",
     .attrs = kAttrs,
     .shape = training_shape,
     .traits = updates(3),
     .doc = "The Adadelta step."}};

const OpRegistration kFtrl{
    {.name = "ResourceApplyFtrl",
     .inputs = "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, "
               "lr_power: T",
     .attrs = kFtrlAttrs,
     .shape = training_shape,
     .traits = updates(3),
     .doc = "The step of following the regularised leader."}};

const OpRegistration kFtrlV2{
    {.name = "ResourceApplyFtrlV2",
     .inputs = "var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T, "
               "l2_shrinkage: T, lr_power: T",
     .attrs = kFtrlAttrs,
     .shape = training_shape,
     .traits = updates(3),
     .doc = "As ResourceApplyFtrl, with shrinkage of the variable."}};

}  // namespace

namespace training {

void apply_gradient_descent(const Variable& var, Tensor alpha, Tensor delta) {
  call(kGradientDescent, {var.handle(), std::move(alpha), std::move(delta)});
}

void apply_momentum(const Variable& var, const Variable& accum, Tensor lr, Tensor grad,
                    Tensor momentum, bool use_nesterov) {
  call(kMomentum,
       {var.handle(), accum.handle(), std::move(lr), std::move(grad), std::move(momentum)},
       {{"use_nesterov", use_nesterov}});
}

void apply_keras_momentum(const Variable& var, const Variable& accum, Tensor lr, Tensor grad,
                          Tensor momentum, bool use_nesterov) {
  call(kKerasMomentum,
       {var.handle(), accum.handle(), std::move(lr), std::move(grad), std::move(momentum)},
       {{"use_nesterov", use_nesterov}});
}

void apply_adam(const Variable& var, const Variable& m, const Variable& v, const AdamScalars& s,
                Tensor grad, bool use_nesterov) {
  call(kAdam,
       {var.handle(), m.handle(), v.handle(), s.beta1_power, s.beta2_power, s.lr, s.beta1, s.beta2,
        s.epsilon, std::move(grad)},
       {{"use_nesterov", use_nesterov}});
}

void apply_adam_with_amsgrad(const Variable& var, const Variable& m, const Variable& v,
                             const Variable& vhat, const AdamScalars& s, Tensor grad) {
  call(kAdamWithAmsgrad, {var.handle(), m.handle(), v.handle(), vhat.handle(), s.beta1_power,
                          s.beta2_power, s.lr, s.beta1, s.beta2, s.epsilon, std::move(grad)});
}

void apply_ada_max(const Variable& var, const Variable& m, const Variable& v, Tensor beta1_power,
                   Tensor lr, Tensor beta1, Tensor beta2, Tensor epsilon, Tensor grad) {
  call(kAdaMax, {var.handle(), m.handle(), v.handle(), std::move(beta1_power), std::move(lr),
                 std::move(beta1), std::move(beta2), std::move(epsilon), std::move(grad)});
}

void apply_rms_prop(const Variable& var, const Variable& ms, const Variable& mom, Tensor lr,
                    Tensor rho, Tensor momentum, Tensor epsilon, Tensor grad) {
  call(kRMSProp, {var.handle(), ms.handle(), mom.handle(), std::move(lr), std::move(rho),
                  std::move(momentum), std::move(epsilon), std::move(grad)});
}

void apply_centered_rms_prop(const Variable& var, const Variable& mg, const Variable& ms,
                             const Variable& mom, Tensor lr, Tensor rho, Tensor momentum,
                             Tensor epsilon, Tensor grad) {
  call(kCenteredRMSProp,
       {var.handle(), mg.handle(), ms.handle(), mom.handle(), std::move(lr), std::move(rho),
        std::move(momentum), std::move(epsilon), std::move(grad)});
}

void apply_adagrad(const Variable& var, const Variable& accum, Tensor lr, Tensor grad,
                   bool update_slots) {
  call(kAdagrad, {var.handle(), accum.handle(), std::move(lr), std::move(grad)},
       {{"update_slots", update_slots}});
}

void apply_adagrad_v2(const Variable& var, const Variable& accum, Tensor lr, Tensor epsilon,
                      Tensor grad, bool update_slots) {
  call(kAdagradV2,
       {var.handle(), accum.handle(), std::move(lr), std::move(epsilon), std::move(grad)},
       {{"update_slots", update_slots}});
}

void apply_adadelta(const Variable& var, const Variable& accum, const Variable& accum_update,
                    Tensor lr, Tensor rho, Tensor epsilon, Tensor grad) {
  call(kAdadelta, {var.handle(), accum.handle(), accum_update.handle(), std::move(lr),
                   std::move(rho), std::move(epsilon), std::move(grad)});
}

void apply_ftrl(const Variable& var, const Variable& accum, const Variable& linear,
                const FtrlScalars& s, Tensor grad, bool multiply_linear_by_lr) {
  const AttrMap attrs{{"multiply_linear_by_lr", multiply_linear_by_lr}};
  if (!s.l2_shrinkage.defined()) {
    call(kFtrl,
         {var.handle(), accum.handle(), linear.handle(), std::move(grad), s.lr, s.l1, s.l2,
          s.lr_power},
         attrs);
    return;
  }
  call(kFtrlV2,
       {var.handle(), accum.handle(), linear.handle(), std::move(grad), s.lr, s.l1, s.l2,
        s.l2_shrinkage, s.lr_power},
       attrs);
}

}  // namespace training
}  // namespace tandem
