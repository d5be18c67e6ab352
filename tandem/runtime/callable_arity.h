#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/runtime/tensor.h"
#include "tandem/runtime/traced_function.h"

/// How many tensors a callable takes: what dataset functions and loops go by when they hand out
/// the tensors of a list as the parameters of a user's callable.
namespace tandem::internal {

template <class F, class = void>
inline constexpr int kArity = -2;  // a generic callable: as many tensors as it accepts
template <class Arguments>
inline constexpr int kArityOf = static_cast<int>(std::tuple_size_v<Arguments>);
template <class... Tensors>
inline constexpr int kArityOf<std::tuple<std::vector<Tensor>, Tensors...>> = -1;
template <class F>
using ArgumentsOf = typename CallableTraits<F>::Arguments;
template <class G>
inline constexpr int kArity<TracedFunction<G>, void> =
    kArityOf<typename TracedFunction<G>::Arguments>;
template <class F>
inline constexpr int kArity<F, std::void_t<decltype(&F::operator())>> = kArityOf<ArgumentsOf<F>>;
template <class R, class... Args>
inline constexpr int kArity<R (*)(Args...), void> = kArityOf<std::tuple<std::decay_t<Args>...>>;

template <class F, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return std::is_invocable_v<F&, decltype((void(I), std::declval<Tensor>()))...>;
}

/// The number of tensors; -1 for a callable whose first parameter is the whole list. Of a generic
/// one the least from N on that it accepts.
template <class F, std::size_t N = 1>
constexpr int arity_of() {
  if constexpr (kArity<F> != -2) {
    return kArity<F>;
  } else {
    static_assert(N <= 16,
                  "a function on a list of tensors takes tensors, one parameter for each, or one "
                  "`const std::vector<td::Tensor>&` (a td::data::Element)");
    if constexpr (takes<F>(std::make_index_sequence<N>())) {
      return static_cast<int>(N);
    } else {
      return arity_of<F, N + 1>();
    }
  }
}

/// Calls with the tensors of a list that has as many as there are I.
template <class F, class List, std::size_t... I>
decltype(auto) call_spread(F& callable, List&& list, std::index_sequence<I...>) {
  if constexpr (std::is_const_v<std::remove_reference_t<List>>) {
    return callable(list[I]...);
  } else {
    return callable(std::move(list[I])...);
  }
}

}  // namespace tandem::internal
