#pragma once

#include <algorithm>

#include "tandem/kernels/cuda/array/targets.h"
#include "tandem/kernels/cuda/support/launch_part.h"
#include "tandem/kernels/cuda/support/types.h"
#include "tandem/kernels/cuda/training/step_tensors.h"

// An optimizer's step: the variable, its slots and the gradient in one pass over their memory, many
// variables in one launch (support/launch_part.h). Ops on handles and on references have the same
// arguments, and those on rows have the rows' indices behind the gradient.
//
// A step is a struct of its scalars in type S with
//   kSlots     variables beside the first
//   kGradient  the gradient's input in the dense op
//   load(in)   reads the scalars: in[i] is the scalar at input i of the dense op
//   operator() changes an element of the variable and those of its slots

namespace tandem::cuda {

// A dense step. Those with the same scalars join.
template <class T, class Step>
struct Apply {
  using Part = StepTensors<T>;
  struct Common {
    ScalarInputs<T> in;
    Step step;
  };
  TANDEM_DEVICE static void run(const Part& on, const Common& common, PartBlocks blocks) {
    Step step = common.step;
    step.load(common.in);
    T* const var = on.var;
    SlotPointers<T> slots;
    for (int k = 0; k < Step::kSlots; ++k) slots.at[k] = on.slots.at[k];
    const T* const gradient = on.gradient;
    const std::int64_t size = on.size;
    for (auto i = blocks.first<std::int64_t>(); i < size; i += blocks.step<std::int64_t>()) {
      step_element(step, var, slots, i, gradient[i]);
    }
  }
};

template <class T, class Step>
void launch_apply(const StepTensors<T>& on, const ScalarInputs<T>& in, const Step& step) {
  std::vector<MemoryUse> uses{writes(on.var, on.size), reads(on.gradient, on.size)};
  for (int k = 0; k < Step::kSlots; ++k) uses.push_back(writes(on.slots.at[k], on.size));
  for (const void* scalar : in.at) {
    if (scalar) uses.push_back(reads(scalar, 1, sizeof(std::int64_t)));
  }
  launch_part<Apply<T, Step>>("apply<T, Step>", shape_for(on.size), on, {in, step}, uses);
}

// Several gradients of one row are applied one after the other, in their order.
template <class T, class Step>
TANDEM_KERNEL apply_rows_kernel(T* var, SlotPointers<T> slots, const T* gradient,
                                ScalarInputs<T> in, Step step, Targets rows, std::int64_t inner) {
  step.load(in);
  const std::int64_t n = rows.size * inner;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t p = i / inner, column = i % inner;
    const std::uint64_t row = rows.rows[p];
    if (row == kLastKey || (p > 0 && rows.rows[p - 1] == row)) continue;
    for (std::int64_t q = p; q < rows.size && rows.rows[q] == row; ++q) {
      step_element(step, var, slots, static_cast<std::int64_t>(row) * inner + column,
                   gradient[rows.updates[q] * inner + column]);
    }
  }
}

// The variables of the step: of the gradient's type, each of its shape or, on rows, of the first's.
inline void check_variables(const KernelCall& call, int count, const TensorView& gradient,
                            bool on_rows) {
  const TensorView first = call.variable(0);
  for (int i = 0; i < count; ++i) {
    const TensorView value = call.variable(i);
    if (value.type != gradient.type) refuse("a variable and its gradient have different dtypes");
    if (value.sizes != (on_rows ? first.sizes : gradient.sizes)) {
      refuse(on_rows ? "var and its slots do not have the same shape"
                     : "var, its slots and grad do not have the same shape");
    }
  }
}

// Asked once all are writable: before that two variables of equal value may share their memory.
template <class T>
void check_slots(const T* var, const SlotPointers<T>& slots, int count) {
  for (int k = 0; k < count; ++k) {
    if (slots.at[k] == var || std::find(slots.at, slots.at + k, slots.at[k]) != slots.at + k)
      refuse("A variable cannot be its own slot: give each slot a variable of its own.");
  }
}

// Elements of a row, where the indices behind the gradient fit.
inline std::int64_t checked_rows(const TensorView& var, const TensorView& gradient,
                                 const TensorView& indices) {
  if (var.rank() < 1) refuse("var must be at least 1 dimensional");
  if (indices.rank() != 1) refuse("indices must be one-dimensional");
  if (gradient.rank() != var.rank()) refuse("var and grad must have the same rank");
  std::int64_t inner = 1;
  for (std::size_t d = 1; d < var.sizes.size(); ++d) {
    if (var.sizes[d] != gradient.sizes[d]) {
      refuse("var and grad must match in dimension " + std::to_string(d));
    }
    inner *= var.sizes[d];
  }
  if (gradient.sizes[0] != indices.count) {
    refuse("grad must be the same size as indices in the first dimension.");
  }
  return inner;
}

/// Runs a step; `step` has what follows from attributes.
template <class T, template <class> class StepOf>
void apply_step(KernelCall& call, bool sparse, const StepOf<Compute<T>>& step) {
  using Step = StepOf<Compute<T>>;
  constexpr int kVariables = Step::kSlots + 1;
  const TensorView gradient = call.input(Step::kGradient);
  check_variables(call, kVariables, gradient, sparse);
  const TensorView first = call.variable(0);
  ScalarInputs<T> in;
  for (int i = kVariables; i < call.num_inputs() - (sparse ? 1 : 0); ++i) {
    if (i == Step::kGradient) continue;
    const TensorView scalar = call.input(i + (sparse && i > Step::kGradient ? 1 : 0));
    if (scalar.rank() != 0) refuse("input " + std::to_string(i) + " is not a scalar");
    in.at[i] = scalar.data;
  }
  std::int64_t inner = 1;
  if (sparse) inner = checked_rows(first, gradient, call.input(Step::kGradient + 1));
  T* const var = call.writable_variable(0).template as<T>();
  SlotPointers<T> slots;
  for (int k = 0; k < Step::kSlots; ++k) {
    slots.at[k] = call.writable_variable(k + 1).template as<T>();
  }
  if (first.count > 0) check_slots(var, slots, Step::kSlots);
  if (sparse) {
    const Targets rows = row_targets(call, call.input(Step::kGradient + 1), first.sizes[0]);
    if (rows.size * inner > 0) {
      TANDEM_LAUNCH((apply_rows_kernel<T, Step>), shape_for(rows.size * inner), 0, var, slots,
                    gradient.as<T>(), in, step, rows, inner);
    }
  } else if (first.count > 0) {
    launch_apply(StepTensors<T>{var, slots, gradient.as<T>(), first.count}, in, step);
  }
  call.return_reference();
}

/// The step for the gradient's type; `set(step)` reads attributes.
template <template <class> class Step, class Set>
void apply_any(KernelCall& call, bool sparse, Set set) {
  const Type type = call.input(Step<float>::kGradient).type;
  if (!visit_floating(type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        Step<Compute<T>> step = {};
        set(step);
        apply_step<T, Step>(call, sparse, step);
      })) {
    no_kernel_for(type);
  }
}

}  // namespace tandem::cuda
