#pragma once

#include <type_traits>

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

// One launch for a function of each element. `F::apply` takes and returns Compute<T>, or returns a
// bool.

namespace tandem::cuda {

template <class F, class T, class Out>
TANDEM_KERNEL map_kernel(const T* x, Out* y, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    y[i] = store<Out>(F::apply(load(x[i])));
  }
}

/// For elements of type T; the output's type is T, or bool where F returns one.
template <class F, class T>
void map_as(KernelCall& call) {
  using Result = decltype(F::apply(Compute<T>()));
  using Out = std::conditional_t<std::is_same_v<Result, bool>, bool, T>;
  const TensorView x = call.input(0), y = call.allocate_output(0, x.sizes);
  if (x.count == 0) return;
  TANDEM_LAUNCH((map_kernel<F, T, Out>), shape_for(x.count), 0, x.as<T>(), y.as<Out>(), x.count);
}

template <class F>
void map_floating(KernelCall& call) {
  const Type type = call.input(0).type;
  if (!visit_floating(type, [&](auto tag) { map_as<F, typename decltype(tag)::type>(call); })) {
    no_kernel_for(type);
  }
}

template <class F>
void map_numbers(KernelCall& call) {
  const Type type = call.input(0).type;
  if (!visit_numbers(type, [&](auto tag) { map_as<F, typename decltype(tag)::type>(call); })) {
    no_kernel_for(type);
  }
}

}  // namespace tandem::cuda
