#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "tandem/core/dtype.h"

namespace tandem::cpu {

/// What kernels choose among several implementations for.
enum class Problem : std::uint8_t {
  kMatMul = 1,
  kConvForward,
  kConvBackpropInput,
  kConvBackpropFilter,
};

/// Problems for which one measurement stands: the same operation, dtype, layout and number of
/// threads, and sizes that agree in their powers of two (512 to 1023 count as one).
struct ProblemClass {
  Problem problem = Problem::kMatMul;
  DType dtype = DType::kFloat;
  std::uint8_t layout = 0;  ///< 0 to 63: transposed operands, strides; the problem's own meaning
  int threads = 1;          ///< up to 1023; more count as that
  std::array<std::int64_t, 4> sizes{1, 1, 1, 1};

  /// Equal for problems of one class and never 0.
  std::uint64_t packed() const {
    std::uint64_t key = static_cast<std::uint64_t>(problem);
    key = key << 6 | (static_cast<std::uint64_t>(dtype) & 63);
    key = key << 6 | (layout & 63u);
    key = key << 10 | static_cast<std::uint64_t>(threads < 1023 ? threads : 1023);
    for (const std::int64_t size : sizes) key = key << 6 | static_cast<std::uint64_t>(level(size));
    return key;
  }
  /// The power of two that a size is counted as, rounded down; 0 for sizes of 0 and 1.
  static int level(std::int64_t size) {
    return size <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(size)) - 1;
  }
  /// For people and files, without the threads: "matmul bfloat16 nt 512+ x 1024+ x 64+ x 1".
  std::string text() const;
};

}  // namespace tandem::cpu
