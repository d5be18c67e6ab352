#pragma once

#include "tandem/kernels/cuda/support/device_code.h"
#include "tandem/kernels/cuda/support/number.h"

// What a step of an optimizer reads and writes.

namespace tandem::cuda {

constexpr int kMaxSlots = 3;
constexpr int kMaxInputs = 12;

/// Scalars stay in device memory: threads read them, so that no launch waits for a copy.
template <class T>
struct ScalarInputs {
  const void* at[kMaxInputs] = {};
  TANDEM_DEVICE Compute<T> operator[](int i) const { return load(*static_cast<const T*>(at[i])); }
  TANDEM_DEVICE std::int64_t integer(int i) const {
    return *static_cast<const std::int64_t*>(at[i]);
  }
};

template <class T>
struct SlotPointers {
  T* at[kMaxSlots + 1] = {};
};

/// A variable, its slots and its gradient. Slots that a step does not have are null.
template <class T>
struct StepTensors {
  T* var = nullptr;
  SlotPointers<T> slots;
  const T* gradient = nullptr;
  std::int64_t size = 0;
};

template <class T, class Step>
TANDEM_DEVICE void step_element(const Step& step, T* var, const SlotPointers<T>& slots,
                                std::int64_t i, T gradient) {
  using S = Compute<T>;
  S value = load(var[i]);
  S slot[Step::kSlots + 1] = {};
  for (int k = 0; k < Step::kSlots; ++k) slot[k] = load(slots.at[k][i]);
  step(value, slot, load(gradient));
  var[i] = store<T>(value);
  for (int k = 0; k < Step::kSlots; ++k) slots.at[k][i] = store<T>(slot[k]);
}

}  // namespace tandem::cuda
