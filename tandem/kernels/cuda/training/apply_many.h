#pragma once

#include <cstring>

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/training/step_tensors.h"

// Dense steps of an optimizer. A model has hundreds of variables, many of them small: steps with
// the same scalars that follow each other in a piece of work become one launch.

namespace tandem::cuda {

template <class T, class Step>
TANDEM_KERNEL apply_kernel(StepTensors<T> on, ScalarInputs<T> in, Step step) {
  step.load(in);
  for (auto i = first_index<std::int64_t>(); i < on.size; i += index_step<std::int64_t>()) {
    step_element(step, on.var, on.slots, i, on.gradient[i]);
  }
}

/// Several of a launch, each with blocks of its own. As many as fit into the 4 KiB that a kernel's
/// parameters may take on every GPU.
template <class T>
struct ManyStepTensors {
  static constexpr int kMax = 64;
  std::int64_t count = 0;
  StepTensors<T> at[kMax];
  std::int32_t first_block[kMax] = {};
};

// Members of `many` are read one by one, so that it stays where parameters lie.
template <class T, class Step>
TANDEM_KERNEL apply_many_kernel(ManyStepTensors<T> many, ScalarInputs<T> in, Step step) {
  step.load(in);
  const auto block = static_cast<std::int32_t>(blockIdx.x);
  const auto count = static_cast<int>(many.count);
  int one = 0;  // the last whose first block is this one or before it
  for (int after = count; after - one > 1;) {
    const int middle = (one + after) / 2;
    if (many.first_block[middle] <= block) {
      one = middle;
    } else {
      after = middle;
    }
  }
  const std::int32_t first = many.first_block[one];
  const std::int32_t end =
      one + 1 < count ? many.first_block[one + 1] : static_cast<std::int32_t>(gridDim.x);
  T* const var = many.at[one].var;
  SlotPointers<T> slots;
  for (int k = 0; k < Step::kSlots; ++k) slots.at[k] = many.at[one].slots.at[k];
  const T* const gradient = many.at[one].gradient;
  const std::int64_t size = many.at[one].size, threads = blockDim.x;
  for (std::int64_t i = (block - first) * threads + threadIdx.x; i < size;
       i += (end - first) * threads) {
    step_element(step, var, slots, i, gradient[i]);
  }
}

/// Adds a step to the launch before, if that is of the same kind and their order does not matter.
template <class T, class Step>
bool join_last_launch(const StepTensors<T>& on, const ScalarInputs<T>& in, const Step& step) {
  using Many = ManyStepTensors<T>;
  static_assert(sizeof(Many) + sizeof(in) + sizeof(Step) + 32 <= 4096);
  LastLaunch last;
  if (!last || on.writes_scalars(in)) return false;
  const bool alone = last.is(apply_kernel<T, Step>), together = last.is(apply_many_kernel<T, Step>);
  if (!alone && !together) return false;
  const KernelParameter<Step> given(step);
  if (std::memcmp(last.parameter(1), &in, sizeof(in)) != 0 ||
      std::memcmp(last.parameter(2), &given.value, sizeof(Step)) != 0)
    return false;
  const Shape shape = shape_for(on.size);
  if (together) {
    auto& many = *static_cast<Many*>(last.parameter(0));
    if (many.count == Many::kMax) return false;
    for (std::int64_t i = 0; i < many.count; ++i) {
      if (on.conflicts_with(many.at[i])) return false;
    }
    many.first_block[many.count] = static_cast<std::int32_t>(last.blocks());
    many.at[many.count++] = on;
    last.set_blocks(last.blocks() + shape.grid.x);
    return true;
  }
  const auto& first = *static_cast<const StepTensors<T>*>(last.parameter(0));
  if (on.conflicts_with(first) || first.writes_scalars(in)) return false;
  Many many;
  many.count = 2;
  many.at[0] = first;
  many.at[1] = on;
  many.first_block[1] = static_cast<std::int32_t>(last.blocks());
  Shape both = shape;
  both.grid.x += last.blocks();
  last.remove();
  TANDEM_LAUNCH((apply_many_kernel<T, Step>), both, 0, many, in, step);
  return true;
}

/// Launches a step, or adds it to the launch before.
template <class T, class Step>
void launch_apply(const StepTensors<T>& on, const ScalarInputs<T>& in, const Step& step) {
  if (join_last_launch(on, in, step)) return;
  TANDEM_LAUNCH((apply_kernel<T, Step>), shape_for(on.size), 0, on, in, step);
}

}  // namespace tandem::cuda
