#pragma once

#include <functional>
#include <span>

#include "tandem/kernels/cpu/conv/conv.h"
#include "tandem/kernels/cpu/support/problem_class.h"

// Among which implementations of a convolution the machine at hand decides
// (support/kernel_tuner.h).

namespace tandem::cpu {

/// For float and filters of one entry.
enum class ConvWay { kConvolution, kMatMul };
inline constexpr const char* kConvWays[] = {"oneDNN convolution", "matmul"};

/// For bfloat16 where the processor multiplies it.
enum class BFloat16ConvWay { kNative, kThroughFloat };
inline constexpr const char* kBFloat16ConvWays[] = {"oneDNN convolution", "through float"};

/// The way to go: measured before, measured now, or `assumed`. `run(part, way)` computes a case of
/// fewer images by one of them; false: it cannot.
int conv_way(KernelContext& c, Problem problem, const ConvCase& p,
             std::span<const char* const> names, int assumed,
             const std::function<bool(const ConvCase& part, int way)>& run);

}  // namespace tandem::cpu
