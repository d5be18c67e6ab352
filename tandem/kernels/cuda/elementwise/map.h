#pragma once

#include <type_traits>

#include "tandem/kernels/cuda/support/launch_part.h"
#include "tandem/kernels/cuda/support/types.h"

// One launch for a function of each element. `F::apply` takes and returns Compute<T>, or returns a
// bool.

namespace tandem::cuda {

template <class F, class T, class Out>
struct Map {
  static constexpr bool kJoins = kIsOfManySmall<T>;
  struct Part {
    const T* x;
    Out* y;
    std::int64_t n;
  };
  using Common = NothingInCommon;
  TANDEM_DEVICE static void run(const Part& part, const Common&, PartBlocks blocks) {
    const T* const x = part.x;
    Out* const y = part.y;
    const std::int64_t n = part.n;
    for (auto i = blocks.first<std::int64_t>(); i < n; i += blocks.step<std::int64_t>()) {
      y[i] = store<Out>(F::apply(load(x[i])));
    }
  }
};

/// For elements of type T; the output's type is T, or bool where F returns one.
template <class F, class T>
void map_as(KernelCall& call) {
  using Result = decltype(F::apply(Compute<T>()));
  using Out = std::conditional_t<std::is_same_v<Result, bool>, bool, T>;
  const TensorView x = call.input(0), y = call.allocate_output(0, x.sizes);
  if (x.count == 0) return;
  const std::int64_t n = x.count;
  const MemoryUse uses[] = {reads(x.as<T>(), n), writes(y.as<Out>(), n)};
  launch_part<Map<F, T, Out>>("map<F, T, Out>", shape_for(n), {x.as<T>(), y.as<Out>(), n}, {},
                              uses);
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
