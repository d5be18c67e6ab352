#pragma once

#include <string>
#include <vector>

#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

/// What _FusedElementwise, _FusedSum and _FusedElementwiseSums compute for each element, as the
/// attributes `ops`, `operands` and `results` say. Values are numbered: inputs from 0 on, then the
/// results of steps.
struct FusedProgram {
  struct Step {
    const char* function = nullptr;  ///< of elementwise/functions.h
    int elements = 1;                ///< that the function takes
    std::vector<int> operands;       ///< with more than `elements`, from the left
  };
  int num_inputs = 0;
  std::vector<Step> steps;
  std::vector<int> results;

  /// Throws Failure for operands that are not there and ops that no generated kernel takes in.
  static FusedProgram read(const std::vector<std::string>& ops, const Sizes& operands,
                           int num_inputs, const Sizes& results);
};

}  // namespace tandem::cuda
