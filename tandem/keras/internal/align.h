#pragma once

#include <string>

#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// Smallest number that Keras lets a probability be.
inline constexpr double kEpsilon = 1e-7;

struct Pair {
  Tensor x;
  Tensor y;
};

/// Where the ranks differ by one and the last axis of the one with more has size 1, drops that
/// axis, or gives the other one too.
Pair to_same_rank(Tensor x, Tensor y);

/// Labels and predictions of one dtype (the predictions') and rank, whose sizes must be equal.
/// `who` is for the InvalidArgumentError that says what does not fit.
Pair align(const std::string& who, const Tensor& y_true, const Tensor& y_pred);

}  // namespace tandem::keras::internal
