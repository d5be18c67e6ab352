#pragma once

// What the kernels of the optimizers share: ResourceApply*, Apply* on references, and the forms
// that change rows alone.

#include <algorithm>
#include <complex>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <type_traits>

#include "tandem/core/error.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/graph/reference.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/kernels/cpu/support/number_types.h"
#include "tandem/kernels/cpu/training/training_float.h"

namespace tandem::cpu {

inline constexpr int kMaxVariables = 4;

// The variables in the first n inputs, locked (in the order of their addresses, so that two steps
// never wait for each other) and writable.
class LockedVariables {
 public:
  LockedVariables(KernelContext& c, int n, const Array& grad, bool rows = false)
      : n_(n), rows_(rows) {
    for (int i = 0; i < n; ++i) variables_[i] = &variable_input(c.input(i));
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
  const Shape& shape() const { return shape_; }

 private:
  void prepare(KernelContext& c, const Array& grad) {
    for (int i = 0; i < n_; ++i) {
      require_initialized(c.input(i), *variables_[i]);
      const Array& value = variables_[i]->value();
      const std::string& name = c.op().inputs[static_cast<std::size_t>(i)].name;
      if (value.dtype() != grad.dtype()) {
        throw InvalidArgumentError(
            cat(name, " is ", value.dtype(), " but the gradient is ", grad.dtype(), "."));
      }
      const Shape& expected = rows_ ? variables_[0]->value().shape() : grad.shape();
      if (!(value.shape() == expected)) {
        throw InvalidArgumentError(cat(name, " and ", rows_ ? "var" : "grad",
                                       " do not have the same shape", value.shape(), " ",
                                       expected));
      }
    }
    shape_ = variables_[0]->value().shape();
    for (int i = 0; i < n_; ++i) memory_[i] = variables_[i]->writable_value().raw_data();
  }
  void unlock() {
    while (held_ > 0) locked_[--held_]->mutex().unlock();
  }

  int n_;
  bool rows_;  // the gradient is one of rows
  int held_ = 0;
  Shape shape_;
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

/// The number of the input that holds the gradient.
inline int gradient_input(const KernelContext& c) {
  const auto& inputs = c.op().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name == "grad" || inputs[i].name == "delta") return static_cast<int>(i);
  throw InternalError(cat("op ", c.op().name, " has no gradient"));
}

/// Calls f with the type of the gradient's elements.
template <class F>
void float_switch(KernelContext& c, F f) {
  with_floating(c.input(gradient_input(c)).dtype(), f);
}

/// Ops on references hand the variable's on.
inline void return_reference(KernelContext& c) {
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
}

/// The rows that a sparse gradient is of: checked, in the order given.
class SparseRows {
 public:
  SparseRows(KernelContext& c, const Shape& var, const Array& grad);
  std::int64_t size() const { return size_; }
  std::int64_t row(std::int64_t i) const;
  /// Elements of a row.
  std::int64_t inner() const { return inner_; }

 private:
  const Array* indices_;
  std::int64_t size_;
  std::int64_t inner_;
};

}  // namespace tandem::cpu
