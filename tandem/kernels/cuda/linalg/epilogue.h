#pragma once

#include <string>
#include <vector>

#include "tandem/kernels/cuda/support/kernel_call.h"
#include "tandem/kernels/cuda/support/number.h"

// What follows a product or a convolution in one kernel: a bias, something of the result's shape,
// an activation, as the attribute `fused_ops` lists them.

namespace tandem::cuda {

enum class Activation : int {
  kNone,
  kRelu,
  kRelu6,
  kElu,
  kLeakyRelu,
  kTanh,
  kSigmoid,
  kGelu,
  kGeluTanh,
  kSwish
};

/// A plain value: it goes to the GPU as an argument. What is added may be float beside results of
/// another type.
struct Epilogue {
  const void* bias = nullptr;
  const void* addend = nullptr;
  std::int64_t addend_row = 0;  // elements from row to row; 0: one row is added to all
  float alpha = 0;
  Activation activation = Activation::kNone;
  int float_bias = 0, float_addend = 0;

  /// Nothing follows.
  bool empty() const { return !bias && !addend && activation == Activation::kNone; }

  template <class T>
  TANDEM_DEVICE static Sum<T> element(const void* from, int is_float, std::int64_t i) {
    return static_cast<Sum<T>>(is_float ? static_cast<const float*>(from)[i]
                                        : load(static_cast<const T*>(from)[i]));
  }
  template <class S>
  TANDEM_DEVICE S activated(S x) const {
    switch (activation) {
      case Activation::kNone: return x;
      case Activation::kRelu: return x < S(0) ? S(0) : x;
      case Activation::kRelu6: return x < S(0) ? S(0) : (x > S(6) ? S(6) : x);
      case Activation::kElu: return x < S(0) ? std::expm1(x) : x;
      case Activation::kLeakyRelu: return x < S(0) ? static_cast<S>(alpha) * x : x;
      case Activation::kTanh: return std::tanh(x);
      case Activation::kSigmoid: return S(1) / (S(1) + std::exp(-x));
      case Activation::kGelu: return S(0.5) * x * std::erfc(-x * S(0.70710678118654752));
      case Activation::kGeluTanh:
        return S(0.5) * x *
               (S(1) + std::tanh(S(0.79788456080286536) * (x + S(0.044715) * x * x * x)));
      case Activation::kSwish: return x / (S(1) + std::exp(-x));
    }
    return x;
  }
  /// T: the type of what is added where that is not float.
  template <class T>
  TANDEM_DEVICE Sum<T> apply(Sum<T> sum, std::int64_t row, std::int64_t column) const {
    if (bias) sum += element<T>(bias, float_bias, column);
    if (addend) sum += element<T>(addend, float_addend, row * addend_row + column);
    return activated(sum);
  }
};

/// By the attributes of the call, whose inputs from `first` on are what is added to results of
/// `columns` in a row. `rows`: of the product; more where it has one row and several are added.
/// Throws Failure for what is not fused, or does not fit.
Epilogue read_epilogue(const KernelCall& call, int first, std::int64_t& rows, std::int64_t columns);

}  // namespace tandem::cuda
