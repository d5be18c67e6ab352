#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

/// How element i of a result finds an input's element, the input being broadcast: the sum over
/// runs of axes of (i / divisor % size) * stride. Runs that every element of the result walks
/// alike are joined, so most inputs have one or none.
struct Access {
  struct Run {
    std::int64_t divisor = 1;  ///< 1: the innermost axes of the result
    std::int64_t size = 0;     ///< 0: the outermost axes, of which no remainder is taken
    std::int64_t stride = 1;
  };
  std::vector<Run> runs;  ///< outermost first; none: one element serves for all

  /// `input` broadcasts to `result`.
  static Access of(const Sizes& input, const Sizes& result);
  /// Element i for element i.
  bool is_identity() const;
  /// Which of the numbers matter: what the generated text depends on.
  std::string form() const;
  /// The index as an expression of i; the numbers are p.at[first] and so on.
  std::string expression(std::size_t first) const;
  /// The numbers that the expression reads.
  void append_numbers(std::vector<std::int64_t>& numbers) const;
};

}  // namespace tandem::cuda
