#pragma once

#include <cstdint>
#include <functional>

namespace tandem::cpu {

struct ImageSize {
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t frames = 0;  ///< of an animation; 0: an image, which has no such axis

  std::int64_t samples() const { return (frames > 0 ? frames : 1) * height * width * channels; }
};

/// Gives the memory for the pixels of an image as soon as its size is known, rows one after the
/// other.
template <class T>
using PixelMemory = std::function<T*(const ImageSize&)>;

/// Takes the pixels of an image line by line, as they are decoded.
class ImageLines {
 public:
  virtual ~ImageLines() = default;
  /// Once, as soon as the size is known.
  virtual void begin(const ImageSize& size) = 0;
  /// Memory for line y, which is filled next. The line before stays in its own, which may be asked
  /// for again.
  virtual std::uint8_t* place(std::int64_t y) = 0;
  /// Line y is in its place. All lines come once, from the top.
  virtual void take(std::int64_t y) = 0;
};

/// Images of as many samples or more are refused, whatever their bytes say.
inline constexpr std::int64_t kMaxSamples = std::int64_t{1} << 29;

}  // namespace tandem::cpu
