#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "tandem/data/state_archive.h"

/// Values of callbacks in a StateArchive.
namespace tandem::keras::internal {

inline void visit(data::StateArchive& state, int& value) {
  auto wide = static_cast<std::int64_t>(value);
  state.value(wide);
  value = static_cast<int>(wide);
}

/// To the bit, NaN too.
inline void visit(data::StateArchive& state, double& value) {
  auto bits = std::bit_cast<std::int64_t>(value);
  state.value(bits);
  value = std::bit_cast<double>(bits);
}

inline void visit(data::StateArchive& state, std::optional<double>& value) {
  bool there = value.has_value();
  state.value(there);
  double number = value.value_or(0);
  visit(state, number);
  value = there ? std::optional(number) : std::nullopt;
}

}  // namespace tandem::keras::internal
