#pragma once

#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {

// How an update changes an element, for the scatter ops.

struct AddTo {
  static constexpr bool kRealOnly = false;
  template <class T>
  T operator()(T a, T b) const {
    return add(a, b);
  }
};

struct SubtractFrom {
  static constexpr bool kRealOnly = false;
  template <class T>
  T operator()(T a, T b) const {
    return subtract(a, b);
  }
};

struct MultiplyBy {
  static constexpr bool kRealOnly = false;
  template <class T>
  T operator()(T a, T b) const {
    return multiply(a, b);
  }
};

struct Smaller {
  static constexpr bool kRealOnly = true;
  template <class T>
  T operator()(T a, T b) const {
    return less(b, a) ? b : a;
  }
};

struct Larger {
  static constexpr bool kRealOnly = true;
  template <class T>
  T operator()(T a, T b) const {
    return less(a, b) ? b : a;
  }
};

}  // namespace tandem::cpu
