#pragma once

// What stand-ins for NVIDIA's libraries share: the stand-in for the driver, and elements of
// tensors.

#include <dlfcn.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tandem/core/half.h"

#include "tests/plugin/cuda_stand_in.h"

namespace stand_in {

inline const StandInControl& driver() {
  static const StandInControl* const control = [] {
    void* library = dlopen(TANDEM_CUDA_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    if (!library) std::abort();
    return reinterpret_cast<const StandInControl* (*)()>(dlsym(library, "cuda_stand_in_control"))();
  }();
  return *control;
}

enum class Number { kHalf, kBFloat16, kFloat, kDouble };

inline std::size_t size_of(Number number) {
  return number == Number::kDouble ? 8 : number == Number::kFloat ? 4 : 2;
}

inline double element(const void* from, Number number, std::int64_t i) {
  switch (number) {
    case Number::kDouble: return static_cast<const double*>(from)[i];
    case Number::kFloat: return static_cast<double>(static_cast<const float*>(from)[i]);
    case Number::kHalf:
      return static_cast<double>(static_cast<float>(static_cast<const tandem::Half*>(from)[i]));
    case Number::kBFloat16: break;
  }
  return static_cast<double>(static_cast<float>(static_cast<const tandem::BFloat16*>(from)[i]));
}

inline void put(void* to, Number number, std::int64_t i, double value) {
  switch (number) {
    case Number::kDouble: static_cast<double*>(to)[i] = value; return;
    case Number::kFloat: static_cast<float*>(to)[i] = static_cast<float>(value); return;
    case Number::kHalf:
      static_cast<tandem::Half*>(to)[i] = tandem::Half(static_cast<float>(value));
      return;
    case Number::kBFloat16: break;
  }
  static_cast<tandem::BFloat16*>(to)[i] = tandem::BFloat16(static_cast<float>(value));
}

inline double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}

}  // namespace stand_in
