// The fused steps of optimizers: a variable and its slots in one pass over their memory, in place.

#include <algorithm>
#include <cmath>
#include <complex>
#include <mutex>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/kernels/cpu/training_float.h"
#include "tandem/kernels/cpu/training_steps-inl.h"
#include "tandem/kernels/cpu/type_switch.h"

namespace tandem::cpu {
namespace {

constexpr int kMaxVariables = 4;

// The variables in the first n inputs, locked (in the order of their addresses, so that two steps
// never wait for each other) and writable.
class LockedVariables {
 public:
  LockedVariables(KernelContext& c, int n, const Array& grad) : n_(n) {
    for (int i = 0; i < n; ++i) variables_[i] = &variable_of(c.input(i));
    std::copy_n(variables_, n, locked_);
    std::sort(locked_, locked_ + n);
    for (int i = 0; i < n; ++i) {
      if (i + 1 < n && locked_[i] == locked_[i + 1]) {
        throw InvalidArgumentError(
            "A variable cannot be its own slot: give each slot a variable of its own.");
      }
    }
    for (; held_ < n; ++held_) locked_[held_]->mutex().lock();
    try {
      prepare(c, grad);
    } catch (...) {
      unlock();
      throw;
    }
  }
  ~LockedVariables() { unlock(); }
  LockedVariables(const LockedVariables&) = delete;
  LockedVariables& operator=(const LockedVariables&) = delete;

  template <class T>
  T* data(int i) const {
    return static_cast<T*>(memory_[i]);
  }

 private:
  void prepare(KernelContext& c, const Array& grad) {
    for (int i = 0; i < n_; ++i) {
      const Array& value = variables_[i]->value();
      const std::string& name = c.op().inputs[static_cast<std::size_t>(i)].name;
      if (value.dtype() != grad.dtype()) {
        throw InvalidArgumentError(
            cat(name, " is ", value.dtype(), " but the gradient is ", grad.dtype(), "."));
      }
      if (!(value.shape() == grad.shape())) {
        throw InvalidArgumentError(
            cat(name, " and grad do not have the same shape", value.shape(), " ", grad.shape()));
      }
    }
    for (int i = 0; i < n_; ++i) memory_[i] = variables_[i]->writable_value().raw_data();
  }
  void unlock() {
    while (held_ > 0) locked_[--held_]->mutex().unlock();
  }

  int n_;
  int held_ = 0;
  VariableResource* variables_[kMaxVariables];
  VariableResource* locked_[kMaxVariables];
  void* memory_[kMaxVariables];
};

template <class T>
struct ScalarOf {
  using type = T;
};
template <>
struct ScalarOf<Half> {
  using type = float;
};
template <>
struct ScalarOf<BFloat16> {
  using type = float;
};
template <class T>
using ScalarFor = typename ScalarOf<T>::type;

// Reads the scalars among the inputs, by name.
template <class T>
class Scalars {
 public:
  explicit Scalars(const KernelContext& c) : c_(c) {}
  ScalarFor<T> operator()(std::string_view name) const {
    for (std::size_t i = 0; i < c_.op().inputs.size(); ++i) {
      if (c_.op().inputs[i].name != name) continue;
      const Array& x = c_.input(static_cast<int>(i));
      if (x.rank() != 0) throw InvalidArgumentError(cat(name, " is not a scalar: ", x.shape()));
      return static_cast<ScalarFor<T>>(*x.template data<T>());
    }
    throw InternalError(cat("op ", c_.op().name, " has no input ", name));
  }
  bool flag(std::string_view name) const { return c_.attr<bool>(name); }

 private:
  const KernelContext& c_;
};

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
void apply(KernelContext& c, const Step& step, std::string_view grad_name = "grad") {
  int grad_input = 0;
  while (c.op().inputs[static_cast<std::size_t>(grad_input)].name != grad_name) ++grad_input;
  const Array& grad = c.input(grad_input);
  const LockedVariables variables(c, 1 + Step::kSlots, grad);
  T* var = variables.data<T>(0);
  T* slots[Step::kSlots + 1] = {};
  for (int k = 0; k < Step::kSlots; ++k) slots[k] = variables.data<T>(k + 1);
  const T* g = grad.data<T>();
  const double cost = std::is_same_v<T, float> ? 0.3 * (Step::kSlots + 1) : 5.0;
  c.intra_op().parallel_for(grad.num_elements(), cost, [&](std::int64_t begin, std::int64_t end) {
    run_range(step, var, slots, g, begin, end);
  });
}

// Calls f with the type of T, the attribute.
template <class F>
void float_switch(KernelContext& c, F f) {
  switch (c.input(c.num_inputs() - 1).dtype()) {
    case DType::kFloat: return f.template operator()<float>();
    case DType::kDouble: return f.template operator()<double>();
    case DType::kHalf: return f.template operator()<Half>();
    case DType::kBFloat16: return f.template operator()<BFloat16>();
    default: throw_no_kernel(c.input(c.num_inputs() - 1).dtype(), c.op().name);
  }
}

void gradient_descent(KernelContext& c) {
  const auto run = [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c, training::GradientDescent<ScalarFor<T>>{in("alpha")}, "delta");
  };
  switch (c.input(2).dtype()) {
    case DType::kComplex64: return run.template operator()<std::complex<float>>();
    case DType::kComplex128: return run.template operator()<std::complex<double>>();
    default: return float_switch(c, run);
  }
}

template <template <class> class Step>
void momentum(KernelContext& c) {
  float_switch(c, [&]<class T>() {
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
  float_switch(c, [&]<class T>() {
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
  float_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c, Step<ScalarFor<T>>{in("lr"), in("rho"), in("momentum"), in("epsilon")});
  });
}

void adagrad(KernelContext& c) {
  float_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c, training::Adagrad<ScalarFor<T>>{in("lr"), in.flag("update_slots")});
  });
}

void adagrad_v2(KernelContext& c) {
  float_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c,
             training::AdagradV2<ScalarFor<T>>{in("lr"), in("epsilon"), in.flag("update_slots")});
  });
}

void adadelta(KernelContext& c) {
  float_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply<T>(c, training::Adadelta<ScalarFor<T>>{in("lr"), in("rho"), in("epsilon")});
  });
}

// ---- Ftrl: rarely used, and full of cases, so by element for every type ----

template <class S>
struct Ftrl {
  S lr, l1, l2, shrinkage, power;
  bool by_rate;

  S scaled(S accum) const { return power == S(-0.5) ? std::sqrt(accum) : std::pow(accum, -power); }

  void operator()(S& var, S& accum, S& linear, S g) const {
    const S next = accum + g * g;
    const S shrunk = g + S(2) * shrinkage * var;
    const S sigma = scaled(next) - scaled(accum);
    const S weight = by_rate ? l1 * lr : l1;
    S quadratic;
    if (by_rate) {
      linear += shrunk * lr - sigma * var;
      quadratic = scaled(next) + S(2) * l2 * lr;
    } else {
      linear += shrunk - sigma / lr * var;
      quadratic = scaled(next) / lr + S(2) * l2;
    }
    const S sign = linear > 0 ? S(1) : linear < 0 ? S(-1) : S(0);
    var = std::abs(linear) > weight ? (weight * sign - linear) / quadratic : S(0);
    accum = next;
  }
};

template <bool kShrinkage>
void ftrl(KernelContext& c) {
  const Array& grad = c.input(3);
  float_switch(c, [&]<class T>() {
    using S = ScalarFor<T>;
    const Scalars<T> in(c);
    Ftrl<S> step{in("lr"), in("l1"),       in("l2"),
                 S(0),     in("lr_power"), in.flag("multiply_linear_by_lr")};
    if constexpr (kShrinkage) step.shrinkage = in("l2_shrinkage");
    const LockedVariables variables(c, 3, grad);
    T* var = variables.data<T>(0);
    T* accum = variables.data<T>(1);
    T* linear = variables.data<T>(2);
    const T* g = grad.data<T>();
    c.intra_op().parallel_for(grad.num_elements(), 20.0, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        S w(var[i]), a(accum[i]), l(linear[i]);
        step(w, a, l, S(g[i]));
        var[i] = T(w);
        accum[i] = T(a);
        linear[i] = T(l);
      }
    });
  });
}

constexpr TypeConstraint kFloats{"T", kFloatTypes};

const KernelRegistration kGradientDescent{{.op = "ResourceApplyGradientDescent",
                                           .types = {{"T", kFloatTypes | kComplexTypes}},
                                           .run = gradient_descent}};
const KernelRegistration kMomentum{
    {.op = "ResourceApplyMomentum", .types = {kFloats}, .run = momentum<training::Momentum>}};
const KernelRegistration kKerasMomentum{{.op = "ResourceApplyKerasMomentum",
                                         .types = {kFloats},
                                         .run = momentum<training::KerasMomentum>}};
const KernelRegistration kAdam{{.op = "ResourceApplyAdam", .types = {kFloats}, .run = adam}};
const KernelRegistration kAmsgrad{
    {.op = "ResourceApplyAdamWithAmsgrad", .types = {kFloats}, .run = amsgrad}};
const KernelRegistration kAdaMax{{.op = "ResourceApplyAdaMax", .types = {kFloats}, .run = ada_max}};
const KernelRegistration kRMSProp{
    {.op = "ResourceApplyRMSProp", .types = {kFloats}, .run = rms_prop<training::RMSProp>}};
const KernelRegistration kCenteredRMSProp{{.op = "ResourceApplyCenteredRMSProp",
                                           .types = {kFloats},
                                           .run = rms_prop<training::CenteredRMSProp>}};
const KernelRegistration kAdagrad{
    {.op = "ResourceApplyAdagrad", .types = {kFloats}, .run = adagrad}};
const KernelRegistration kAdagradV2{
    {.op = "ResourceApplyAdagradV2", .types = {kFloats}, .run = adagrad_v2}};
const KernelRegistration kAdadelta{
    {.op = "ResourceApplyAdadelta", .types = {kFloats}, .run = adadelta}};
const KernelRegistration kFtrl{{.op = "ResourceApplyFtrl", .types = {kFloats}, .run = ftrl<false>}};
const KernelRegistration kFtrlV2{
    {.op = "ResourceApplyFtrlV2", .types = {kFloats}, .run = ftrl<true>}};

}  // namespace
}  // namespace tandem::cpu
