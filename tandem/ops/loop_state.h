#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/runtime/callable_arity.h"
#include "tandem/runtime/structure.h"
#include "tandem/runtime/tensor.h"

/// How td::while_loop hands its state to the user's callables, and takes it from them.
namespace tandem::internal {

template <class T>
concept Structured = requires(const T& value, StructureWriter& writer) {
  Structure<T>::write(value, writer);
};

/// What a loop carries for a state given as T: tensors in place of numbers and variables, which
/// would stay as they are, also where they stand in a pair or a tuple.
template <class T>
struct LoopState {
  using Type = std::conditional_t<
      std::is_arithmetic_v<T> || (!Structured<T> && std::is_convertible_v<T, Tensor>), Tensor, T>;
};
template <class A, class B>
struct LoopState<std::pair<A, B>> {
  using Type = std::pair<typename LoopState<A>::Type, typename LoopState<B>::Type>;
};
template <class... T>
struct LoopState<std::tuple<T...>> {
  using Type = std::tuple<typename LoopState<T>::Type...>;
};
template <class T>
using LoopStateOf = typename LoopState<std::decay_t<T>>::Type;

/// How many loop variables a state has, where its type says so; else 0.
template <class State>
inline constexpr std::size_t kLoopVariables = 0;
template <class A, class B>
inline constexpr std::size_t kLoopVariables<std::pair<A, B>> = 2;
template <class... T>
inline constexpr std::size_t kLoopVariables<std::tuple<T...>> = sizeof...(T);
template <class T, std::size_t N>
inline constexpr std::size_t kLoopVariables<std::array<T, N>> = N;
template <class State>
using LoopIndices = std::make_index_sequence<kLoopVariables<State>>;

template <class F, class State, std::size_t... I>
constexpr bool takes_apart(std::index_sequence<I...>) {
  return sizeof...(I) != 0 && std::is_invocable_v<F&, const std::tuple_element_t<I, State>&...>;
}
template <class F, class State>
constexpr bool takes_state() {
  if constexpr (std::is_invocable_v<F&, const State&>) {
    return true;
  } else if constexpr (std::is_same_v<State, std::vector<Tensor>>) {
    return kArity<F> == -2 || kArity<F> > 0;
  } else {
    return takes_apart<F, State>(LoopIndices<State>());
  }
}

/// `callable(state)` if it takes the whole state, else with the loop variables as its parameters.
template <class F, class State>
decltype(auto) call_on_state(F& callable, const State& state) {
  if constexpr (std::is_invocable_v<F&, const State&>) {
    return callable(state);
  } else if constexpr (std::is_same_v<State, std::vector<Tensor>>) {
    constexpr auto kTaken = static_cast<std::size_t>(arity_of<F>());
    if (state.size() != kTaken) {
      throw InvalidArgumentError(cat("while_loop: a callable takes ", kTaken,
                                     " loop variables, but there are ", state.size(), "."));
    }
    return call_spread(callable, state, std::make_index_sequence<kTaken>());
  } else {
    return std::apply(callable, state);
  }
}

template <class Result, class State, std::size_t... I>
constexpr bool gives_parts(std::index_sequence<I...>) {
  return (std::is_convertible_v<std::tuple_element_t<I, Result>, std::tuple_element_t<I, State>> &&
          ...);
}
template <class Result, class State>
constexpr bool gives_state() {
  if constexpr (std::is_convertible_v<Result, State>) {
    return true;
  } else if constexpr (kLoopVariables<Result> != 0 &&
                       kLoopVariables<Result> == kLoopVariables<State>) {
    return gives_parts<Result, State>(LoopIndices<State>());
  } else {
    return false;
  }
}

/// The state of the next round, of what the body returned: the same, or a pair, tuple or array of
/// as many loop variables.
template <class State, class Result>
State next_state(Result result) {
  if constexpr (std::is_convertible_v<Result, State>) {
    return State(std::move(result));
  } else {
    return std::apply([](auto&... part) { return State{std::move(part)...}; }, result);
  }
}

}  // namespace tandem::internal
