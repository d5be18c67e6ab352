#pragma once

#include <cstdint>

#include "tandem/core/array.h"
#include "tandem/graph/kernel_context.h"

// What fused convolutions and products do to each element after their sum is there.

namespace tandem::cpu {

enum class Activation : std::int64_t {
  kNone,
  kRelu,
  kRelu6,
  kElu,
  kLeakyRelu,
  kTanh,
  kSigmoid,
  kGelu,
  kGeluTanh,
  kSwish,
};

/// result = activation(sum + bias[channel] + addend), without what is not there.
struct Epilogue {
  const Array* bias = nullptr;    ///< one value for each of the last axis
  const Array* addend = nullptr;  ///< of the result's shape
  Activation activation = Activation::kNone;
  float alpha = 0;  ///< LeakyRelu's slope below zero
};

/// Made from the attributes fused_ops and leakyrelu_alpha: BiasAdd, Add and an activation, in this
/// order, each or none of them. The inputs from `first_arg` on are the bias and the addend. Throws
/// UnimplementedError for other lists, InvalidArgumentError for another number of inputs.
Epilogue read_epilogue(const KernelContext& c, int first_arg);

/// Throws InvalidArgumentError unless the bias has `channels` elements.
void check_bias(const Epilogue& e, std::int64_t channels);

/// One element, plainly.
float activated(Activation activation, float alpha, float x);

/// The epilogue by itself, plainly: `sums` (float or bfloat16) has `count` elements, rows of
/// `channels`; it and the addend are repeated until `out` (float or bfloat16) is full. `out` may
/// lie where the addend does.
void apply_epilogue(KernelContext& c, const Epilogue& e, const Array& sums, std::int64_t channels,
                    Array& out);

}  // namespace tandem::cpu
