#pragma once

#include <type_traits>

#include "tandem/kernels/cuda/support/broadcast.h"
#include "tandem/kernels/cuda/support/launch_part.h"
#include "tandem/kernels/cuda/support/types.h"

// One launch for a function of two elements, with broadcasting. `F::apply` takes two Compute<T> and
// returns one, or a bool.

namespace tandem::cuda {

template <class F, class T, class Out>
struct Combine {
  static constexpr bool kJoins = kIsOfManySmall<T>;
  struct Part {
    const T* a;
    const T* b;
    Out* y;
    std::int64_t n;
    Strides<2> strides;
  };
  using Common = NothingInCommon;
  TANDEM_DEVICE static void run(const Part& part, const Common&, PartBlocks blocks) {
    const T* const a = part.a;
    const T* const b = part.b;
    Out* const y = part.y;
    const std::int64_t n = part.n;
    for (auto i = blocks.first<std::int64_t>(); i < n; i += blocks.step<std::int64_t>()) {
      std::int64_t at[2];
      part.strides.offsets(i, at);
      y[i] = store<Out>(F::apply(load(a[at[0]]), load(b[at[1]])));
    }
  }
};

template <class F, class T>
void combine_as(KernelCall& call) {
  using Result = decltype(F::apply(Compute<T>(), Compute<T>()));
  using Out = std::conditional_t<std::is_same_v<Result, bool>, bool, T>;
  const TensorView a = call.input(0), b = call.input(1);
  const TensorView y = call.allocate_output(0, broadcast_sizes(a.sizes, b.sizes));
  if (y.count == 0) return;
  const Strides<2> strides = broadcast_strides<2>(y.sizes, {a.sizes, b.sizes});
  const MemoryUse uses[] = {reads(a.as<T>(), a.count), reads(b.as<T>(), b.count),
                            writes(y.as<Out>(), y.count)};
  launch_part<Combine<F, T, Out>>("combine<F, T, Out>", shape_for(y.count),
                                  {a.as<T>(), b.as<T>(), y.as<Out>(), y.count, strides}, {}, uses);
}

template <class F, class T, class Out>
TANDEM_KERNEL combine_with_parameter_kernel(const T* a, const T* b, Out* y, std::int64_t n,
                                            float parameter) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    y[i] = store<Out>(F::apply(load(a[i]), load(b[i]), parameter));
  }
}

/// A function of two elements of one shape and a number; of numbers, or of floating types alone.
template <class F>
void combine_with_parameter(KernelCall& call, float parameter, bool floating) {
  const TensorView a = call.input(0), b = call.input(1);
  if (a.sizes != b.sizes) refuse("both inputs must have one shape");
  const TensorView y = call.allocate_output(0, a.sizes);
  if (y.count == 0) return;
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Result = decltype(F::apply(Compute<T>(), Compute<T>(), 0.0f));
    using Out = std::conditional_t<std::is_same_v<Result, bool>, bool, T>;
    TANDEM_LAUNCH((combine_with_parameter_kernel<F, T, Out>), shape_for(y.count), 0, a.as<T>(),
                  b.as<T>(), y.as<Out>(), y.count, parameter);
  };
  if (!(floating ? visit_floating(a.type, run) : visit_numbers(a.type, run))) no_kernel_for(a.type);
}

template <class F>
void combine_floating(KernelCall& call) {
  const Type type = call.input(0).type;
  if (!visit_floating(type, [&](auto tag) { combine_as<F, typename decltype(tag)::type>(call); })) {
    no_kernel_for(type);
  }
}

template <class F>
void combine_integers(KernelCall& call) {
  const Type type = call.input(0).type;
  if (!visit_integers(type, [&](auto tag) { combine_as<F, typename decltype(tag)::type>(call); })) {
    no_kernel_for(type);
  }
}

template <class F>
void combine_numbers(KernelCall& call) {
  const Type type = call.input(0).type;
  if (!visit_numbers(type, [&](auto tag) { combine_as<F, typename decltype(tag)::type>(call); })) {
    no_kernel_for(type);
  }
}

}  // namespace tandem::cuda
