#include <cstdint>
#include <utility>

#include "tandem/data/autotune/host_scope.h"
#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/stage_error.h"

namespace tandem::data {
namespace {

void check_state(const Element& initial, const Element& state) {
  if (state.size() != initial.size()) {
    throw InvalidArgumentError(cat("Invalid `reduce_func`. The new state has ", state.size(),
                                   " components, the initial state ", initial.size(), "."));
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (state[i].dtype() == initial[i].dtype()) continue;
    throw InvalidArgumentError(
        cat("Invalid `reduce_func`. The element types for the new state must match the initial "
            "state. Expected ",
            initial[i].dtype(), ", got ", state[i].dtype(), " in component ", i, "."));
  }
}

}  // namespace

Element Dataset::reduce(Element initial_state, ReduceFn fn) const {
  if (initial_state.empty()) throw InvalidArgumentError("reduce needs an initial state.");
  Element state = initial_state;
  Element element;
  std::int64_t number = 0;
  for (Iterator it = iterator(); it.next(element); ++number) {
    try {
      const HostScope host;
      Element next = fn(state, element);
      check_state(initial_state, next);
      state = std::move(next);
    } catch (...) {
      throw_stage_error("reduce", number);
    }
  }
  return state;
}

Tensor Dataset::reduce(Tensor initial_state, ReduceFn fn) const {
  return std::move(reduce(Element{std::move(initial_state)}, std::move(fn))[0]);
}

Element Dataset::get_single_element() const {
  Iterator it = iterator();
  Element only, more;
  if (!it.next(only)) throw InvalidArgumentError("Dataset was empty.");
  if (it.next(more)) {
    throw InvalidArgumentError("Dataset had more than one element. Take the first with take(1).");
  }
  return only;
}

namespace internal {

void throw_reduce_arity(std::size_t wanted, const Element& state, const Element& element) {
  throw InvalidArgumentError(cat(
      "A function for reduce takes ", wanted, " tensors, but the state has ", state.size(),
      state.size() == 1 ? " component" : " components", " and the elements have ", element.size(),
      ". Give it one parameter for each of both, or two `const td::data::Element&`."));
}

}  // namespace internal
}  // namespace tandem::data
