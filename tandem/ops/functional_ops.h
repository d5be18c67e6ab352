#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/loop_state.h"
#include "tandem/runtime/structure.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Functions applied along the first axis. `elems` is a tensor or a structure of them (std::pair,
// std::tuple, std::vector) of equal first sizes; the function takes one element of each, as a
// structure of the same kind. Eagerly the function runs for one element after the other; in traced
// functions it is the body of a loop. Gradients flow through.

namespace internal {
using FlatFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
// The results for all elements, stacked. `dtypes` are those of the results where a function is
// traced; empty: the elements'.
TANDEM_EXPORT std::vector<Tensor> flat_map(const FlatFunction& fn, const std::vector<Tensor>& elems,
                                           const std::vector<DType>& dtypes);
using FlatFold = std::function<std::vector<Tensor>(const std::vector<Tensor>& state,
                                                   const std::vector<Tensor>& element)>;
// The states after each element (stacked), or only the last. Without `initial` the first element
// is.
TANDEM_EXPORT std::vector<Tensor> flat_scan(const FlatFold& fn, const std::vector<Tensor>& elems,
                                            const std::vector<Tensor>& initial, bool has_initial,
                                            bool reverse, bool keep_all);

template <class T>
std::vector<Tensor> flat_of(const T& value) {
  StructureWriter writer;
  Structure<T>::write(value, writer);
  return std::move(writer.tensors);
}
template <class T>
T of_flat(const T& like, std::vector<Tensor> flat) {
  StructureReader reader(std::move(flat));
  return Structure<T>::read(like, reader);
}
}  // namespace internal

/// The function's results for each element, stacked. In traced functions the results have the
/// dtypes of the elements unless `fn_output_dtypes` names others.
///
///     td::map_fn([](td::Tensor row) { return td::reduce_sum(row); }, matrix);
template <class F, class Elems>
auto map_fn(F fn, const Elems& elems, const std::vector<DType>& fn_output_dtypes = {}) {
  using State = internal::LoopStateOf<Elems>;
  const State state(elems);
  using Result = std::decay_t<decltype(internal::call_on_state(fn, state))>;
  std::optional<Result> like;
  auto flat = internal::flat_map(
      [&](const std::vector<Tensor>& element) {
        like = internal::call_on_state(fn, internal::of_flat(state, element));
        return internal::flat_of(*like);
      },
      internal::flat_of(state), fn_output_dtypes);
  return internal::of_flat(*like, std::move(flat));
}
/// map_fn: each element by itself. TensorFlow's function of this name batches the ops instead.
template <class F, class Elems>
auto vectorized_map(F fn, const Elems& elems) {
  return map_fn(std::move(fn), elems);
}

struct ScanOptions {
  bool reverse = false;  ///< from the last element to the first
};

/// fn(state, element) for one element after the other; all states, stacked.
template <class F, class State, class Elems>
State scan(F fn, const Elems& elems, const State& initializer, const ScanOptions& options = {}) {
  const internal::LoopStateOf<Elems> all(elems);
  auto flat = internal::flat_scan(
      [&](const std::vector<Tensor>& state, const std::vector<Tensor>& element) {
        return internal::flat_of(
            State(fn(internal::of_flat(initializer, state), internal::of_flat(all, element))));
      },
      internal::flat_of(all), internal::flat_of(initializer), true, options.reverse, true);
  return internal::of_flat(initializer, std::move(flat));
}
/// … beginning with the first element as the state.
template <class F>
Tensor scan(F fn, const Tensor& elems) {
  return internal::flat_scan(
      [&](const std::vector<Tensor>& state, const std::vector<Tensor>& element) {
        return std::vector<Tensor>{Tensor(fn(state[0], element[0]))};
      },
      {elems}, {}, false, false, true)[0];
}

/// fn(state, element) from the first element to the last; the last state.
template <class F, class State, class Elems>
State foldl(F fn, const Elems& elems, const State& initializer) {
  const internal::LoopStateOf<Elems> all(elems);
  auto flat = internal::flat_scan(
      [&](const std::vector<Tensor>& state, const std::vector<Tensor>& element) {
        return internal::flat_of(
            State(fn(internal::of_flat(initializer, state), internal::of_flat(all, element))));
      },
      internal::flat_of(all), internal::flat_of(initializer), true, false, false);
  return internal::of_flat(initializer, std::move(flat));
}
template <class F>
Tensor foldl(F fn, const Tensor& elems) {
  return internal::flat_scan(
      [&](const std::vector<Tensor>& state, const std::vector<Tensor>& element) {
        return std::vector<Tensor>{Tensor(fn(state[0], element[0]))};
      },
      {elems}, {}, false, false, false)[0];
}
/// … from the last element to the first.
template <class F, class State, class Elems>
State foldr(F fn, const Elems& elems, const State& initializer) {
  const internal::LoopStateOf<Elems> all(elems);
  auto flat = internal::flat_scan(
      [&](const std::vector<Tensor>& state, const std::vector<Tensor>& element) {
        return internal::flat_of(
            State(fn(internal::of_flat(initializer, state), internal::of_flat(all, element))));
      },
      internal::flat_of(all), internal::flat_of(initializer), true, true, false);
  return internal::of_flat(initializer, std::move(flat));
}
template <class F>
Tensor foldr(F fn, const Tensor& elems) {
  return internal::flat_scan(
      [&](const std::vector<Tensor>& state, const std::vector<Tensor>& element) {
        return std::vector<Tensor>{Tensor(fn(state[0], element[0]))};
      },
      {elems}, {}, false, true, false)[0];
}

}  // namespace tandem
