#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace tandem::keras::internal {

/// What numpy.random.RandomState(seed).shuffle does, call after call.
class NumpyShuffle {
 public:
  explicit NumpyShuffle(std::int64_t seed) : twister_(static_cast<std::uint32_t>(seed)) {}
  /// 0, …, count − 1 in another order.
  std::vector<std::size_t> next(std::size_t count);

 private:
  std::mt19937 twister_;
};

}  // namespace tandem::keras::internal
