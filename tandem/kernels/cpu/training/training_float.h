#pragma once

#include <cstdint>

#include "tandem/kernels/cpu/training/training_steps.h"

namespace tandem::cpu {

/// A step over elements [begin, end) of float arrays, with the widest vectors that the processor
/// has. The result does not depend on how a range is cut into pieces.
#define TANDEM_TRAINING_STEPS(X) \
  X(GradientDescent)             \
  X(Momentum)                    \
  X(KerasMomentum)               \
  X(Adam)                        \
  X(AdamWithAmsgrad)             \
  X(AdaMax)                      \
  X(RMSProp)                     \
  X(CenteredRMSProp)             \
  X(Adagrad)                     \
  X(AdagradV2)                   \
  X(Adadelta)

#define TANDEM_DECLARE_STEP(STEP)                                                         \
  void run_float_step(const training::STEP<float>& step, float* var, float* const* slots, \
                      const float* grad, std::int64_t begin, std::int64_t end);
TANDEM_TRAINING_STEPS(TANDEM_DECLARE_STEP)
#undef TANDEM_DECLARE_STEP

}  // namespace tandem::cpu
