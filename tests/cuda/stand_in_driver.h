#pragma once

// The stand-in for the driver of the tests' program, as the device layer has opened it.

#include <dlfcn.h>

#include <cstdlib>

#include "tests/plugin/cuda_stand_in.h"

namespace tandem {

inline const StandInControl& driver() {
  static const StandInControl* const control = [] {
    void* library = dlopen(TANDEM_CUDA_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    if (!library) std::abort();
    return reinterpret_cast<const StandInControl* (*)()>(dlsym(library, "cuda_stand_in_control"))();
  }();
  return *control;
}

}  // namespace tandem
