// The optimizers' steps in their other forms: on references, and on rows of variables alone. The
// usual ones stand in training_ops.cpp.

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem {
namespace {

// All inputs but variables, gradient and indices are scalars.
void step_shape(InferenceContext& c) {
  const auto& args = c.op().inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const ArgDef& arg = args[static_cast<std::size_t>(i)];
    const bool scalar = !arg.is_ref && arg.dtype != DType::kResource && arg.name != "grad" &&
                        arg.name != "delta" && arg.name != "indices";
    if (scalar) c.require_rank(i, 0);
    if (arg.name == "indices") c.require_rank(i, 1);
  }
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
}

#define TANDEM_DENSE "T: numbers; use_locking: bool = false"
#define TANDEM_SPARSE "T: numbers; Tindices: index; use_locking: bool = false"

// HANDLES is a macro of the type of the variables: resource or Ref(T).
#define TANDEM_RESOURCE_STEP(NAME, HANDLES, REST, ATTRS, DOC)               \
  const OpRegistration kResource##NAME{{.name = "Resource" #NAME,           \
                                        .inputs = HANDLES("resource") REST, \
                                        .attrs = ATTRS,                     \
                                        .shape = step_shape,                \
                                        .traits = {.stateful = true},       \
                                        .doc = DOC}};
#define TANDEM_REF_STEP(NAME, HANDLES, REST, ATTRS, DOC)          \
  const OpRegistration k##NAME{{.name = #NAME,                    \
                                .inputs = HANDLES("Ref(T)") REST, \
                                .outputs = "out: Ref(T)",         \
                                .attrs = ATTRS,                   \
                                .shape = step_shape,              \
                                .traits = {.stateful = true},     \
                                .doc = DOC " Returns the reference to var."}};
#define TANDEM_BOTH(NAME, HANDLES, REST, ATTRS, DOC)    \
  TANDEM_RESOURCE_STEP(NAME, HANDLES, REST, ATTRS, DOC) \
  TANDEM_REF_STEP(NAME, HANDLES, REST, ATTRS, DOC)

#define VAR(T) "var: " T
#define VAR_ACCUM(T) "var: " T ", accum: " T
#define VAR_M(T) "var: " T ", m: " T
#define VAR_M_V(T) "var: " T ", m: " T ", v: " T
#define VAR_ADADELTA(T) "var: " T ", accum: " T ", accum_update: " T
#define VAR_LINEAR(T) "var: " T ", accum: " T ", linear: " T
#define VAR_DA(T) "var: " T ", gradient_accumulator: " T ", gradient_squared_accumulator: " T
#define VAR_MS(T) "var: " T ", ms: " T ", mom: " T
#define VAR_MG(T) "var: " T ", mg: " T ", ms: " T ", mom: " T

// ---- On references what training_ops.cpp has for handles ----

TANDEM_REF_STEP(ApplyGradientDescent, VAR, ", alpha: T, delta: T", TANDEM_DENSE,
                "var -= alpha * delta.")
TANDEM_REF_STEP(ApplyMomentum, VAR_ACCUM, ", lr: T, grad: T, momentum: T",
                TANDEM_DENSE "; use_nesterov: bool = false",
                "accum = accum * momentum + grad; var -= lr * accum.")
TANDEM_REF_STEP(ApplyAdam, VAR_M_V,
                ", beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T",
                TANDEM_DENSE "; use_nesterov: bool = false",
                "The Adam step on var and its moments m and v.")
TANDEM_REF_STEP(ApplyAdaMax, VAR_M_V,
                ", beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, grad: T", TANDEM_DENSE,
                "The Adam step with the infinity norm.")
TANDEM_REF_STEP(ApplyRMSProp, VAR_MS, ", lr: T, rho: T, momentum: T, epsilon: T, grad: T",
                TANDEM_DENSE, "The RMSProp step.")
TANDEM_REF_STEP(ApplyCenteredRMSProp, VAR_MG, ", lr: T, rho: T, momentum: T, epsilon: T, grad: T",
                TANDEM_DENSE, "The RMSProp step with the mean gradient taken off.")
TANDEM_REF_STEP(ApplyAdagrad, VAR_ACCUM, ", lr: T, grad: T",
                TANDEM_DENSE "; update_slots: bool = true",
                "accum += grad^2; var -= lr * grad / sqrt(accum).")
TANDEM_REF_STEP(ApplyAdagradV2, VAR_ACCUM, ", lr: T, epsilon: T, grad: T",
                TANDEM_DENSE "; update_slots: bool = true",
                "accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon).")
TANDEM_REF_STEP(ApplyAdadelta, VAR_ADADELTA, ", lr: T, rho: T, epsilon: T, grad: T", TANDEM_DENSE,
                "The Adadelta step.")
TANDEM_REF_STEP(ApplyFtrl, VAR_LINEAR, ", grad: T, lr: T, l1: T, l2: T, lr_power: T",
                TANDEM_DENSE "; multiply_linear_by_lr: bool = false",
                "The step of following the regularised leader.")
TANDEM_REF_STEP(ApplyFtrlV2, VAR_LINEAR,
                ", grad: T, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T",
                TANDEM_DENSE "; multiply_linear_by_lr: bool = false",
                "As ApplyFtrl, with shrinkage of the variable.")

// ---- Steps that come in all forms ----

TANDEM_BOTH(ApplyProximalGradientDescent, VAR, ", alpha: T, l1: T, l2: T, delta: T", TANDEM_DENSE,
            "The step of gradient descent, then what l1 and l2 draw towards zero.")
TANDEM_BOTH(ApplyProximalAdagrad, VAR_ACCUM, ", lr: T, l1: T, l2: T, grad: T", TANDEM_DENSE,
            "The Adagrad step, then what l1 and l2 draw towards zero.")
TANDEM_BOTH(ApplyAdagradDA, VAR_DA, ", grad: T, lr: T, l1: T, l2: T, global_step: int64",
            TANDEM_DENSE, "The step of Adagrad with dual averaging.")
TANDEM_BOTH(ApplyAddSign, VAR_M, ", lr: T, alpha: T, sign_decay: T, beta: T, grad: T", TANDEM_DENSE,
            "m = beta m + (1 - beta) grad; var -= lr (alpha + sign_decay sign(grad) sign(m)) grad.")
TANDEM_BOTH(ApplyPowerSign, VAR_M, ", lr: T, logbase: T, sign_decay: T, beta: T, grad: T",
            TANDEM_DENSE,
            "m = beta m + (1 - beta) grad; "
            "var -= lr exp(logbase sign_decay sign(grad) sign(m)) grad.")

// ---- Rows: row i of the gradient is that of the variable's row indices[i] ----

TANDEM_BOTH(SparseApplyMomentum, VAR_ACCUM, ", lr: T, grad: T, indices: Tindices, momentum: T",
            TANDEM_SPARSE "; use_nesterov: bool = false", "The momentum step on some rows.")
TANDEM_RESOURCE_STEP(SparseApplyKerasMomentum, VAR_ACCUM,
                     ", lr: T, grad: T, indices: Tindices, momentum: T",
                     TANDEM_SPARSE "; use_nesterov: bool = false",
                     "Keras' momentum step on some rows.")
TANDEM_BOTH(SparseApplyRMSProp, VAR_MS,
            ", lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices", TANDEM_SPARSE,
            "The RMSProp step on some rows.")
TANDEM_BOTH(SparseApplyCenteredRMSProp, VAR_MG,
            ", lr: T, rho: T, momentum: T, epsilon: T, grad: T, indices: Tindices", TANDEM_SPARSE,
            "The centered RMSProp step on some rows.")
TANDEM_BOTH(SparseApplyAdagrad, VAR_ACCUM, ", lr: T, grad: T, indices: Tindices",
            TANDEM_SPARSE "; update_slots: bool = true", "The Adagrad step on some rows.")
TANDEM_BOTH(SparseApplyAdagradV2, VAR_ACCUM, ", lr: T, epsilon: T, grad: T, indices: Tindices",
            TANDEM_SPARSE "; update_slots: bool = true",
            "The Adagrad step with epsilon on some rows.")
TANDEM_BOTH(SparseApplyAdadelta, VAR_ADADELTA,
            ", lr: T, rho: T, epsilon: T, grad: T, indices: Tindices", TANDEM_SPARSE,
            "The Adadelta step on some rows.")
TANDEM_BOTH(SparseApplyFtrl, VAR_LINEAR,
            ", grad: T, indices: Tindices, lr: T, l1: T, l2: T, lr_power: T",
            TANDEM_SPARSE "; multiply_linear_by_lr: bool = false",
            "The step of following the regularised leader on some rows.")
TANDEM_BOTH(SparseApplyFtrlV2, VAR_LINEAR,
            ", grad: T, indices: Tindices, lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T",
            TANDEM_SPARSE "; multiply_linear_by_lr: bool = false",
            "As SparseApplyFtrl, with shrinkage of the variable.")
TANDEM_BOTH(SparseApplyProximalGradientDescent, VAR,
            ", alpha: T, l1: T, l2: T, grad: T, indices: Tindices", TANDEM_SPARSE,
            "As ApplyProximalGradientDescent on some rows.")
TANDEM_BOTH(SparseApplyProximalAdagrad, VAR_ACCUM,
            ", lr: T, l1: T, l2: T, grad: T, indices: Tindices", TANDEM_SPARSE,
            "As ApplyProximalAdagrad on some rows.")
TANDEM_BOTH(SparseApplyAdagradDA, VAR_DA,
            ", grad: T, indices: Tindices, lr: T, l1: T, l2: T, global_step: int64", TANDEM_SPARSE,
            "As ApplyAdagradDA on some rows.")

}  // namespace
}  // namespace tandem
