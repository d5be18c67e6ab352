#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// The elements of two lists in pairs, as Python's zip: `for (const auto& [x, y] : td::zip(a, b))`.
/// Throws InvalidArgumentError if one list is longer. Datasets have td::data::zip.
template <class A, class B>
std::vector<std::pair<A, B>> zip(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) {
    throw InvalidArgumentError(
        cat("td::zip: the lists have ", a.size(), " and ", b.size(), " elements."));
  }
  std::vector<std::pair<A, B>> pairs;
  pairs.reserve(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) pairs.emplace_back(a[i], b[i]);
  return pairs;
}

/// Gradients with their variables, which may stand in braces:
/// `optimizer.apply_gradients(td::zip(tape.gradient(loss, {w, b}), {w, b}))`.
inline std::vector<std::pair<Tensor, Variable>> zip(const std::vector<Tensor>& gradients,
                                                    const std::vector<Variable>& variables) {
  return zip<Tensor, Variable>(gradients, variables);
}

}  // namespace tandem
