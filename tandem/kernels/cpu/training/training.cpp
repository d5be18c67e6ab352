// The fused steps of optimizers: a variable and its slots in one pass over their memory, in place.

#include <cmath>
#include <complex>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/training/training_apply.h"
#include "tandem/kernels/cpu/training/training_steps-inl.h"

namespace tandem::cpu {
namespace {

template <class T, class Step>
void run_range(const Step& step, T* var, T* const* slots, const T* grad, std::int64_t begin,
               std::int64_t end) {
  if constexpr (std::is_same_v<T, float>) {
    run_float_step(step, var, slots, grad, begin, end);
  } else {
    using N = ScalarFor<T>;
    for (std::int64_t i = begin; i < end; ++i) {
      N w = static_cast<N>(var[i]);
      N s[Step::kSlots + 1] = {};
      for (int k = 0; k < Step::kSlots; ++k) s[k] = static_cast<N>(slots[k][i]);
      HWY_NAMESPACE::step(step, w, s, static_cast<N>(grad[i]));
      var[i] = static_cast<T>(w);
      for (int k = 0; k < Step::kSlots; ++k) slots[k][i] = static_cast<T>(s[k]);
    }
  }
}

template <class T, class Step>
void apply(KernelContext& c, const Step& step) {
  const Array& grad = c.input(gradient_input(c));
  const bool sparse = c.op().find_attr("Tindices") != nullptr;
  const LockedVariables variables(c, 1 + Step::kSlots, grad, sparse);
  T* var = variables.data<T>(0);
  T* slots[Step::kSlots + 1] = {};
  for (int k = 0; k < Step::kSlots; ++k) slots[k] = variables.data<T>(k + 1);
  const T* g = grad.data<T>();
  if (sparse) {
    const SparseRows rows(c, variables.shape(), grad);
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      const std::int64_t at = rows.row(i) * rows.inner();
      T* row_slots[Step::kSlots + 1] = {};
      for (int k = 0; k < Step::kSlots; ++k) row_slots[k] = slots[k] + at;
      run_range(step, var + at, row_slots, g + i * rows.inner(), 0, rows.inner());
    }
    return return_reference(c);
  }
  const double cost = std::is_same_v<T, float> ? 0.3 * (Step::kSlots + 1) : 5.0;
  c.intra_op().parallel_for(grad.num_elements(), cost, [&](std::int64_t begin, std::int64_t end) {
    run_range(step, var, slots, g, begin, end);
  });
  return_reference(c);
}

// Calls f with the type of the gradient's elements, which may be complex.
template <class F>
void number_switch(KernelContext& c, F f) {
  switch (c.input(gradient_input(c)).dtype()) {
    case DType::kComplex64: return f.template operator()<std::complex<float>>();
    case DType::kComplex128: return f.template operator()<std::complex<double>>();
    default: return float_switch(c, f);
  }
}

void gradient_descent(KernelContext& c) {
  number_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c, training::GradientDescent<ScalarFor<T>>{in("alpha")});
  });
}

template <template <class> class Step>
void momentum(KernelContext& c) {
  number_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c, Step<ScalarFor<T>>{in("lr"), in("momentum"), in.flag("use_nesterov")});
  });
}

template <class T>
ScalarFor<T> adam_rate(const Scalars<T>& in) {
  using S = ScalarFor<T>;
  return in("lr") * std::sqrt(S(1) - in("beta2_power")) / (S(1) - in("beta1_power"));
}

void adam(KernelContext& c) {
  number_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c, training::Adam<ScalarFor<T>>{adam_rate<T>(in), in("beta1"), in("beta2"),
                                             in("epsilon"), in.flag("use_nesterov")});
  });
}

void amsgrad(KernelContext& c) {
  float_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c, training::AdamWithAmsgrad<ScalarFor<T>>{adam_rate<T>(in), in("beta1"), in("beta2"),
                                                        in("epsilon")});
  });
}

void ada_max(KernelContext& c) {
  float_switch(c, [&]<class T>() {
    using S = ScalarFor<T>;
    const Scalars<T> in(c);
    apply<T>(c, training::AdaMax<S>{in("lr") / (S(1) - in("beta1_power")), in("beta1"), in("beta2"),
                                    in("epsilon")});
  });
}

template <template <class> class Step>
void rms_prop(KernelContext& c) {
  number_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c, Step<ScalarFor<T>>{in("lr"), in("rho"), in("momentum"), in("epsilon")});
  });
}

void adagrad(KernelContext& c) {
  number_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c, training::Adagrad<ScalarFor<T>>{in("lr"), in.flag("update_slots")});
  });
}

void adagrad_v2(KernelContext& c) {
  number_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c,
             training::AdagradV2<ScalarFor<T>>{in("lr"), in("epsilon"), in.flag("update_slots")});
  });
}

void adadelta(KernelContext& c) {
  number_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c, training::Adadelta<ScalarFor<T>>{in("lr"), in("rho"), in("epsilon")});
  });
}

constexpr TypeConstraint kFloats{"T", kFloatTypes};
constexpr TypeConstraint kNumbers{"T", kFloatTypes | kComplexTypes};

const KernelRegistration kGradientDescent{
    {.op = "ResourceApplyGradientDescent", .types = {kNumbers}, .run = gradient_descent}};
const KernelRegistration kMomentum{
    {.op = "ResourceApplyMomentum", .types = {kNumbers}, .run = momentum<training::Momentum>}};
const KernelRegistration kKerasMomentum{{.op = "ResourceApplyKerasMomentum",
                                         .types = {kNumbers},
                                         .run = momentum<training::KerasMomentum>}};
const KernelRegistration kAdam{{.op = "ResourceApplyAdam", .types = {kNumbers}, .run = adam}};
const KernelRegistration kAmsgrad{
    {.op = "ResourceApplyAdamWithAmsgrad", .types = {kFloats}, .run = amsgrad}};
const KernelRegistration kAdaMax{{.op = "ResourceApplyAdaMax", .types = {kFloats}, .run = ada_max}};
const KernelRegistration kRMSProp{
    {.op = "ResourceApplyRMSProp", .types = {kNumbers}, .run = rms_prop<training::RMSProp>}};
const KernelRegistration kCenteredRMSProp{{.op = "ResourceApplyCenteredRMSProp",
                                           .types = {kNumbers},
                                           .run = rms_prop<training::CenteredRMSProp>}};
const KernelRegistration kAdagrad{
    {.op = "ResourceApplyAdagrad", .types = {kNumbers}, .run = adagrad}};
const KernelRegistration kAdagradV2{
    {.op = "ResourceApplyAdagradV2", .types = {kNumbers}, .run = adagrad_v2}};
const KernelRegistration kAdadelta{
    {.op = "ResourceApplyAdadelta", .types = {kNumbers}, .run = adadelta}};

// The training steps on references, and on rows alone.
#define TANDEM_STEP(NAME, RUN) \
  const KernelRegistration kRef##NAME{{.op = "Apply" #NAME, .types = {kNumbers}, .run = RUN}};
#define TANDEM_SPARSE_STEP(NAME, RUN)                                        \
  const KernelRegistration kSparse##NAME{                                    \
      {.op = "ResourceSparseApply" #NAME, .types = {kNumbers}, .run = RUN}}; \
  const KernelRegistration kRefSparse##NAME{                                 \
      {.op = "SparseApply" #NAME, .types = {kNumbers}, .run = RUN}};
TANDEM_STEP(Momentum, momentum<training::Momentum>)
TANDEM_STEP(Adam, adam)
TANDEM_STEP(RMSProp, rms_prop<training::RMSProp>)
TANDEM_STEP(CenteredRMSProp, rms_prop<training::CenteredRMSProp>)
TANDEM_STEP(Adagrad, adagrad)
TANDEM_STEP(AdagradV2, adagrad_v2)
TANDEM_STEP(Adadelta, adadelta)
TANDEM_SPARSE_STEP(Momentum, momentum<training::Momentum>)
TANDEM_SPARSE_STEP(RMSProp, rms_prop<training::RMSProp>)
TANDEM_SPARSE_STEP(CenteredRMSProp, rms_prop<training::CenteredRMSProp>)
TANDEM_SPARSE_STEP(Adagrad, adagrad)
TANDEM_SPARSE_STEP(AdagradV2, adagrad_v2)
TANDEM_SPARSE_STEP(Adadelta, adadelta)
#undef TANDEM_STEP
#undef TANDEM_SPARSE_STEP
const KernelRegistration kRefAdaMax{{.op = "ApplyAdaMax", .types = {kFloats}, .run = ada_max}};
const KernelRegistration kRefGradientDescent{
    {.op = "ApplyGradientDescent", .types = {kNumbers}, .run = gradient_descent}};
const KernelRegistration kSparseKerasMomentum{{.op = "ResourceSparseApplyKerasMomentum",
                                               .types = {kNumbers},
                                               .run = momentum<training::KerasMomentum>}};

}  // namespace
}  // namespace tandem::cpu
