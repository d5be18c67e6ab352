#pragma once

#include <any>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
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

}  // namespace internal

/// The result of `then_branch()` if the scalar `pred` is true, else of `else_branch()`; both return
/// the same structure of tensors with equal dtypes. Eagerly just one branch runs; while a function
/// is being traced both become functions of an If node, of which one runs. Differentiable.
template <class Then, class Else>
auto cond(const Tensor& pred, Then then_branch, Else else_branch) {
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
///     auto [i, s] = td::while_loop([](auto& v) { return v.first < 10; },
///                                  [](auto& v) { return std::pair(v.first + 1, v.second * 2.0); },
///                                  std::pair(td::Tensor(0), x));
template <class Condition, class Body, class State>
State while_loop(Condition condition, Body body, const State& state,
                 const WhileOptions& options = {}) {
  StructureWriter writer;
  Structure<State>::write(state, writer);
  const auto rebuild = [&state](const std::vector<Tensor>& flat) {
    StructureReader reader(flat);
    return Structure<State>::read(state, reader);
  };
  StructureReader reader(internal::flat_while(
      [&](const std::vector<Tensor>& flat) {
        const State now = rebuild(flat);
        return Tensor(condition(now));
      },
      [&](const std::vector<Tensor>& flat) {
        const State now = rebuild(flat);
        const State next = body(now);
        StructureWriter w;
        Structure<State>::write(next, w);
        return std::move(w.tensors);
      },
      std::move(writer.tensors), options));
  return Structure<State>::read(state, reader);
}

}  // namespace tandem
