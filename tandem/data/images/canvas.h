#pragma once

#include <cstdint>
#include <string_view>

#include "tandem/core/array.h"

namespace tandem::data {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
};

/// A picture to draw on: uint8 [height,width,3]. What lies outside is cut off.
class Canvas {
 public:
  Canvas(std::int64_t height, std::int64_t width, Colour background);

  void fill(std::int64_t y, std::int64_t x, std::int64_t height, std::int64_t width, Colour colour);
  /// Digits, '/', '-' and blanks in a face of 5 x 7 pixels; other characters show as a box.
  void write(std::int64_t y, std::int64_t x, std::string_view text, std::int64_t scale,
             Colour colour);
  static std::int64_t text_width(std::string_view text, std::int64_t scale);
  static constexpr std::int64_t kTextHeight = 7;

  const Array& pixels() const { return pixels_; }

 private:
  Array pixels_;
};

}  // namespace tandem::data
