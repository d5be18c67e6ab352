#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// "ij...,jk->...ik" taken apart: the labels of each operand and of the result, where "..." is one
/// '.'.
struct TANDEM_EXPORT EinsumEquation {
  std::vector<std::string> operands;
  std::string result;
  bool has_result = false;  ///< there is a "->"

  /// Throws InvalidArgumentError for anything but letters, commas, spaces, "..." and one "->".
  static EinsumEquation parse(std::string_view equation);
  std::string to_string() const;
};

/// Labels of axes, one for each axis: a letter's code, or kEllipsis + i for the i-th axis from the
/// right of those that "..." stands for (so axes that broadcast together have the same label).
struct TANDEM_EXPORT EinsumLabels {
  static constexpr int kEllipsis = 256;
  std::vector<std::vector<int>> operands;
  std::vector<int> result;

  /// The labels for operands of these ranks. Throws InvalidArgumentError if they don't fit the
  /// equation.
  EinsumLabels(const EinsumEquation& equation, std::span<const int> ranks);
};

}  // namespace tandem
