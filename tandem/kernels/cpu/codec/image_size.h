#pragma once

#include <cstdint>
#include <functional>

namespace tandem::cpu {

struct ImageSize {
  std::int64_t height = 0, width = 0, channels = 0;
};

/// Gives the memory for the pixels of an image as soon as its size is known, rows one after the
/// other.
template <class T>
using PixelMemory = std::function<T*(const ImageSize&)>;

/// Images of as many samples or more are refused, whatever their bytes say.
inline constexpr std::int64_t kMaxSamples = std::int64_t{1} << 29;

}  // namespace tandem::cpu
