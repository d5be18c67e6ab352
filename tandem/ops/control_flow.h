#pragma once

#include <any>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/loop_state.h"
#include "tandem/runtime/structure.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

struct WhileOptions {
  /// Shapes that hold for the loop variables before every iteration, one each; empty: the
  /// variables' own, with sizes that the body changes left open.
  std::vector<PartialShape> shape_invariants = {};
  /// At most so many iterations; -1: as many as the condition wants.
  std::int64_t maximum_iterations = -1;
};

namespace internal {

using FlatBranch = std::function<std::vector<Tensor>()>;
using FlatStep = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
TANDEM_EXPORT std::vector<Tensor> flat_cond(const Tensor& pred, const FlatBranch& then_branch,
                                            const FlatBranch& else_branch);
TANDEM_EXPORT std::vector<Tensor> flat_switch_case(const Tensor& index,
                                                   const std::vector<FlatBranch>& branches);
TANDEM_EXPORT std::vector<Tensor> flat_while(
    const std::function<Tensor(const std::vector<Tensor>&)>& condition, const FlatStep& body,
    std::vector<Tensor> state, const WhileOptions& options);

template <class... T>
inline constexpr bool kLoopVariablesOnly = !(std::is_same_v<T, WhileOptions> || ...);

/// while_loop with callables that take a State.
template <class State, class Condition, class Body>
State while_loop_on(Condition& condition, Body& body, const State& state,
                    const WhileOptions& options) {
  using Truth = std::decay_t<decltype(call_on_state(condition, state))>;
  using Result = std::decay_t<decltype(call_on_state(body, state))>;
  static_assert(std::is_convertible_v<Truth, Tensor>,
                "while_loop: the condition returns a boolean scalar");
  static_assert(gives_state<Result, State>(),
                "while_loop: the body returns as many loop variables as it takes, of several a "
                "std::pair, std::tuple or std::array");
  StructureWriter writer;
  Structure<State>::write(state, writer);
  const auto rebuild = [&state](const std::vector<Tensor>& flat) {
    StructureReader reader(flat);
    return Structure<State>::read(state, reader);
  };
  StructureReader reader(flat_while(
      [&](const std::vector<Tensor>& flat) {
        return Tensor(call_on_state(condition, rebuild(flat)));
      },
      [&](const std::vector<Tensor>& flat) {
        StructureWriter next;
        Structure<State>::write(next_state<State>(call_on_state(body, rebuild(flat))), next);
        return std::move(next.tensors);
      },
      std::move(writer.tensors), options));
  return Structure<State>::read(state, reader);
}

}  // namespace internal

/// The result of `then_branch()` if the scalar `pred` is true, else of `else_branch()`; both return
/// the same structure of tensors with equal dtypes. Eagerly just one branch runs; while a function
/// is being traced both become functions of an If node, of which one runs. Differentiable.
template <class Then, class Else>
auto cond(const Tensor& pred, Then then_branch, Else else_branch) {
  static_assert(std::is_invocable_v<Then&> && std::is_invocable_v<Else&>,
                "cond: the branches take nothing; lambdas capture what they need");
  using Result = std::decay_t<decltype(then_branch())>;
  static_assert(std::is_same_v<Result, std::decay_t<decltype(else_branch())>>,
                "both branches must return the same type");
  std::any structure;
  const auto flat = [&structure](auto& branch) {
    return [&structure, &branch] {
      StructureWriter writer;
      Result result = branch();
      Structure<Result>::write(result, writer);
      structure = std::move(result);
      return std::move(writer.tensors);
    };
  };
  StructureReader reader(internal::flat_cond(pred, flat(then_branch), flat(else_branch)));
  return Structure<Result>::read(*std::any_cast<Result>(&structure), reader);
}

/// The result of `branches[index]()`, or of the last one for any other index; all return the same
/// structure of tensors. `index` is an int32 scalar. Eagerly just one runs; while a function is
/// being traced they become functions of a Case node. Differentiable.
template <class Branch>
auto switch_case(const Tensor& index, const std::vector<Branch>& branches) {
  using Result = std::decay_t<decltype(branches[0]())>;
  std::any structure;
  std::vector<internal::FlatBranch> flat;
  for (const Branch& branch : branches) {
    flat.push_back([&structure, &branch] {
      StructureWriter writer;
      Result result = branch();
      Structure<Result>::write(result, writer);
      structure = std::move(result);
      return std::move(writer.tensors);
    });
  }
  StructureReader reader(internal::flat_switch_case(index, flat));
  return Structure<Result>::read(*std::any_cast<Result>(&structure), reader);
}

/// The result of the first branch whose boolean scalar is true, else of `otherwise()`.
template <class Branch, class Default>
auto case_(const std::vector<std::pair<Tensor, Branch>>& branches, Default otherwise,
           std::size_t first = 0) -> std::decay_t<decltype(otherwise())> {
  if (first == branches.size()) return otherwise();
  return cond(branches[first].first, branches[first].second,
              [&] { return case_(branches, otherwise, first + 1); });
}

/// Runs `state = body(state)` as long as the boolean scalar `condition(state)` is true; `state` is
/// a tensor or a structure of tensors whose dtypes stay the same. While a function is being traced
/// it becomes a While node. Differentiable once (not twice) when traced.
///
/// For a pair, tuple, std::array or std::vector<Tensor> the callables may take the loop variables
/// as parameters, one each, or the whole as one; the body returns the next ones as such a
/// structure. Numbers in a pair or tuple, or alone, become tensors.
///
///     auto [i, s] = td::while_loop(
///         [](td::Tensor k, td::Tensor) { return k < 10; },
///         [](td::Tensor k, td::Tensor v) { return std::pair(k + 1, v * 2.0); },
///         std::pair(0, x), {.maximum_iterations = 100});
template <class Condition, class Body, class State>
internal::LoopStateOf<State> while_loop(Condition condition, Body body, const State& state,
                                        const WhileOptions& options = {}) {
  using Carried = internal::LoopStateOf<State>;
  constexpr bool kConditionFits = internal::takes_state<Condition, Carried>();
  constexpr bool kBodyFits = internal::takes_state<Body, Carried>();
  static_assert(kConditionFits,
                "while_loop: the condition takes the loop variables as tensors, one parameter for "
                "each, or the whole state as one parameter");
  static_assert(kBodyFits,
                "while_loop: the body takes the loop variables as tensors, one parameter for each, "
                "or the whole state as one parameter");
  if constexpr (kConditionFits && kBodyFits) {
    return internal::while_loop_on<Carried>(condition, body, state, options);
  }
}

/// A loop with two loop variables or more, each given by itself, as tf.while_loop takes them; the
/// result is a tuple of them. Options need them in one structure, as above.
///
///     auto [i, s] = td::while_loop(
///         [](td::Tensor k, td::Tensor) { return k < 10; },
///         [](td::Tensor k, td::Tensor v) { return std::pair(k + 1, v * 2.0); }, 0, x);
template <class Condition, class Body, class First, class Second, class... Rest>
requires internal::kLoopVariablesOnly<Second, Rest...>
auto while_loop(Condition condition, Body body, const First& first, const Second& second,
                const Rest&... rest) {
  using State = std::tuple<internal::LoopStateOf<First>, internal::LoopStateOf<Second>,
                           internal::LoopStateOf<Rest>...>;
  return while_loop(std::move(condition), std::move(body), State(first, second, rest...));
}

}  // namespace tandem
