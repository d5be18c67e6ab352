// Optimizers' steps that are rarely used, or full of cases: element by element for every type.

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/training/training_apply.h"

namespace tandem::cpu {

SparseRows::SparseRows(KernelContext& c, const Shape& var, const Array& grad)
    // Everywhere the indices follow the gradient.
    : indices_(&c.input(gradient_input(c) + 1)) {
  if (var.rank() < 1) throw InvalidArgumentError("var must be at least 1 dimensional");
  if (indices_->rank() != 1) throw InvalidArgumentError("indices must be one-dimensional");
  if (grad.rank() != var.rank()) {
    throw InvalidArgumentError(
        cat("var and grad must have the same rank, but are ", var, " and ", grad.shape()));
  }
  for (int d = 1; d < var.rank(); ++d) {
    if (var[d] != grad.shape()[d])
      throw InvalidArgumentError(cat("var and grad must match in dimension ", d));
  }
  size_ = indices_->dim(0);
  if (grad.dim(0) != size_)
    throw InvalidArgumentError("grad must be the same size as indices in the first dimension.");
  inner_ = var.product(1, var.rank());
  for (std::int64_t i = 0; i < size_; ++i) {
    if (row(i) < 0 || row(i) >= var[0]) {
      throw InvalidArgumentError(
          cat("Index ", row(i), " at offset ", i, " in indices is out of range"));
    }
  }
}

std::int64_t SparseRows::row(std::int64_t i) const {
  return indices_->dtype() == DType::kInt64 ? indices_->data<std::int64_t>()[i]
                                            : indices_->data<std::int32_t>()[i];
}

namespace {

template <class S>
S sign(S x) {
  if (std::isnan(x)) return x;
  return static_cast<S>((x > S(0)) - (x < S(0)));
}

// Hyperparameters that TensorFlow refuses. Comparisons are such that NaN is refused too.
template <class T>
void require_positive(const Scalars<T>& in, const char* name) {
  if (!(in(name) > 0))
    throw InvalidArgumentError(cat(name, " must be positive, but is ", in(name)));
}
template <class T>
void require_not_negative(const Scalars<T>& in, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (!(in(name) >= 0)) {
      throw InvalidArgumentError(cat(name, " must not be negative, but is ", in(name)));
    }
  }
}

// Runs a step, which changes a variable's element and those of its slots.
template <class T, class Step>
void apply_each(KernelContext& c, const Step& step) {
  using S = ScalarFor<T>;
  constexpr int kSlots = Step::kSlots;
  const Array& grad = c.input(gradient_input(c));
  const bool sparse = c.op().find_attr("Tindices") != nullptr;
  const LockedVariables variables(c, 1 + kSlots, grad, sparse);
  T* var = variables.data<T>(0);
  T* slots[kSlots + 1] = {};
  for (int k = 0; k < kSlots; ++k) slots[k] = variables.data<T>(k + 1);
  const T* g = grad.data<T>();
  const auto run = [&](std::int64_t at, std::int64_t from, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
      S w(var[at + i]);
      S s[kSlots + 1] = {};
      for (int k = 0; k < kSlots; ++k) s[k] = S(slots[k][at + i]);
      step(w, s, S(g[from + i]));
      var[at + i] = T(w);
      for (int k = 0; k < kSlots; ++k) slots[k][at + i] = T(s[k]);
    }
  };
  if (sparse) {
    const SparseRows rows(c, variables.shape(), grad);
    for (std::int64_t i = 0; i < rows.size(); ++i)
      run(rows.row(i) * rows.inner(), i * rows.inner(), rows.inner());
  } else {
    c.intra_op().parallel_for(grad.num_elements(), 20.0, [&](std::int64_t begin, std::int64_t end) {
      run(begin, begin, end - begin);
    });
  }
  return_reference(c);
}

template <class S, bool kSparse>
struct Ftrl {
  static constexpr int kSlots = 2;  // squared gradients, linear
  S lr, l1, l2, shrinkage, power;
  bool by_rate;

  S scaled(S accum) const { return power == S(-0.5) ? std::sqrt(accum) : std::pow(accum, -power); }

  void operator()(S& var, S* slot, S g) const {
    S& accum = slot[0];
    S& linear = slot[1];
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
    // Equal to the dense form but for NaN, which TensorFlow turns into 0 in its dense form alone.
    if constexpr (kSparse) {
      var = (std::clamp(linear, -weight, weight) - linear) / quadratic;
    } else {
      var = std::abs(linear) > weight ? (weight * sign(linear) - linear) / quadratic : S(0);
    }
    accum = next;
  }
};

template <class T>
void check_sparse_ftrl(const Scalars<T>& in, bool by_rate, bool shrinks) {
  if (by_rate) {
    require_not_negative(in, {"lr"});
  } else {
    require_positive(in, "lr");
  }
  require_not_negative(in, {"l1", "l2"});
  if (shrinks) require_not_negative(in, {"l2_shrinkage"});
  if (!(in("lr_power") <= 0)) {
    throw InvalidArgumentError(cat("lr_power must not be positive, but is ", in("lr_power")));
  }
}

template <bool kShrinkage, bool kSparse>
void ftrl(KernelContext& c) {
  float_switch(c, [&]<class T>() {
    using S = ScalarFor<T>;
    const Scalars<T> in(c);
    const bool by_rate = in.flag("multiply_linear_by_lr");
    if constexpr (kSparse) check_sparse_ftrl(in, by_rate, kShrinkage);
    Ftrl<S, kSparse> step{in("lr"), in("l1"), in("l2"), S(0), in("lr_power"), by_rate};
    if constexpr (kShrinkage) step.shrinkage = in("l2_shrinkage");
    apply_each<T>(c, step);
  });
}

// What is left of `x` after it was drawn towards zero by l1 and l2, for a step of size `rate`.
template <class S>
S proximal(S x, S rate, S l1, S l2) {
  const S scale = S(1) + l2 * rate;
  if (l1 > S(0)) return sign(x) * std::max(std::abs(x) - rate * l1, S(0)) / scale;
  return x / scale;
}

template <class S>
struct ProximalGradientDescent {
  static constexpr int kSlots = 0;
  S rate, l1, l2;
  void operator()(S& var, S*, S g) const { var = proximal(var - rate * g, rate, l1, l2); }
};

template <class S>
struct ProximalAdagrad {
  static constexpr int kSlots = 1;
  S rate, l1, l2;
  void operator()(S& var, S* slot, S g) const {
    slot[0] += g * g;
    const S now = rate / std::sqrt(slot[0]);
    var = proximal(var - now * g, now, l1, l2);
  }
};

template <class S, bool kSparse>
struct AdagradDA {
  static constexpr int kSlots = 2;  // sums of gradients and of their squares
  S rate, l1, l2, steps;
  void operator()(S& var, S* slot, S g) const {
    slot[0] += g;
    slot[1] += g * g;
    // Equal to the dense form but before the first step, where TensorFlow's form on rows is NaN.
    if constexpr (kSparse) {
      const S left = l1 > S(0) ? sign(slot[0]) * std::max(std::abs(slot[0]) / steps - l1, S(0))
                               : slot[0] / steps;
      var = -left / (l2 + std::sqrt(slot[1]) / (steps * rate));
      return;
    }
    const S sum =
        l1 > S(0) ? sign(slot[0]) * std::max(std::abs(slot[0]) - l1 * steps, S(0)) : slot[0];
    var = -rate * sum / (l2 * steps * rate + std::sqrt(slot[1]));
  }
};

template <class S>
struct AddSign {
  static constexpr int kSlots = 1;
  S rate, alpha, decay, beta;
  void operator()(S& var, S* slot, S g) const {
    slot[0] = slot[0] * beta + g * (S(1) - beta);
    var -= rate * (alpha + decay * sign(g) * sign(slot[0])) * g;
  }
};

template <class S>
struct PowerSign {
  static constexpr int kSlots = 1;
  S rate, log_base, decay, beta;
  void operator()(S& var, S* slot, S g) const {
    slot[0] = slot[0] * beta + g * (S(1) - beta);
    var -= rate * std::exp(log_base * decay * sign(g) * sign(slot[0])) * g;
  }
};

void proximal_gradient_descent(KernelContext& c) {
  float_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply_each<T>(c, ProximalGradientDescent<ScalarFor<T>>{in("alpha"), in("l1"), in("l2")});
  });
}

void proximal_adagrad(KernelContext& c) {
  float_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    require_positive(in, "lr");
    require_not_negative(in, {"l1", "l2"});
    apply_each<T>(c, ProximalAdagrad<ScalarFor<T>>{in("lr"), in("l1"), in("l2")});
  });
}

template <bool kSparse>
void adagrad_da(KernelContext& c) {
  int at = 0;
  while (c.op().inputs[static_cast<std::size_t>(at)].name != "global_step") ++at;
  const std::int64_t steps = scalar_int_input(c, at, "global_step");
  float_switch(c, [&]<class T>() {
    using S = ScalarFor<T>;
    const Scalars<T> in(c);
    apply_each<T>(c, AdagradDA<S, kSparse>{in("lr"), in("l1"), in("l2"), static_cast<S>(steps)});
  });
}

void add_sign(KernelContext& c) {
  float_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply_each<T>(c, AddSign<ScalarFor<T>>{in("lr"), in("alpha"), in("sign_decay"), in("beta")});
  });
}

void power_sign(KernelContext& c) {
  float_switch(c, [&]<class T>() {
    const Scalars<T> in(c);
    apply_each<T>(c,
                  PowerSign<ScalarFor<T>>{in("lr"), in("logbase"), in("sign_decay"), in("beta")});
  });
}

constexpr TypeConstraint kFloats{"T", kFloatTypes};

// Every step comes for handles and for references; those with rows also for sparse gradients.
#define TANDEM_STEP(NAME, RUN)                                                                     \
  const KernelRegistration k##NAME{{.op = "ResourceApply" #NAME, .types = {kFloats}, .run = RUN}}; \
  const KernelRegistration kRef##NAME{{.op = "Apply" #NAME, .types = {kFloats}, .run = RUN}};
#define TANDEM_SPARSE_STEP(NAME, RUN)                                       \
  const KernelRegistration kSparse##NAME{                                   \
      {.op = "ResourceSparseApply" #NAME, .types = {kFloats}, .run = RUN}}; \
  const KernelRegistration kRefSparse##NAME{                                \
      {.op = "SparseApply" #NAME, .types = {kFloats}, .run = RUN}};
TANDEM_STEP(Ftrl, (ftrl<false, false>))
TANDEM_STEP(FtrlV2, (ftrl<true, false>))
TANDEM_STEP(ProximalGradientDescent, proximal_gradient_descent)
TANDEM_STEP(ProximalAdagrad, proximal_adagrad)
TANDEM_STEP(AdagradDA, adagrad_da<false>)
TANDEM_STEP(AddSign, add_sign)
TANDEM_STEP(PowerSign, power_sign)
TANDEM_SPARSE_STEP(Ftrl, (ftrl<false, true>))
TANDEM_SPARSE_STEP(FtrlV2, (ftrl<true, true>))
TANDEM_SPARSE_STEP(ProximalGradientDescent, proximal_gradient_descent)
TANDEM_SPARSE_STEP(ProximalAdagrad, proximal_adagrad)
TANDEM_SPARSE_STEP(AdagradDA, adagrad_da<true>)
#undef TANDEM_STEP
#undef TANDEM_SPARSE_STEP

}  // namespace
}  // namespace tandem::cpu
