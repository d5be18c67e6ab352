#include "tandem/data/images/canvas.h"

#include <algorithm>

namespace tandem::data {
namespace {

constexpr std::int64_t kGlyphWidth = 5;

struct Glyph {
  char character;
  const char* rows[Canvas::kTextHeight];
};

constexpr Glyph kGlyphs[] = {
    {'0', {" ### ", "#   #", "#  ##", "# # #", "##  #", "#   #", " ### "}},
    {'1', {"  #  ", " ##  ", "# #  ", "  #  ", "  #  ", "  #  ", "#####"}},
    {'2', {" ### ", "#   #", "    #", "  ## ", " #   ", "#    ", "#####"}},
    {'3', {"#####", "   # ", "  #  ", "   # ", "    #", "#   #", " ### "}},
    {'4', {"   # ", "  ## ", " # # ", "#  # ", "#####", "   # ", "   # "}},
    {'5', {"#####", "#    ", "#### ", "    #", "    #", "#   #", " ### "}},
    {'6', {"  ## ", " #   ", "#    ", "#### ", "#   #", "#   #", " ### "}},
    {'7', {"#####", "    #", "   # ", "  #  ", "  #  ", " #   ", " #   "}},
    {'8', {" ### ", "#   #", "#   #", " ### ", "#   #", "#   #", " ### "}},
    {'9', {" ### ", "#   #", "#   #", " ####", "    #", "   # ", " ##  "}},
    {'/', {"    #", "    #", "   # ", "  #  ", " #   ", "#    ", "#    "}},
    {'-', {"     ", "     ", "     ", " ### ", "     ", "     ", "     "}},
    {' ', {"     ", "     ", "     ", "     ", "     ", "     ", "     "}},
};
constexpr Glyph kBox = {'?', {"#####", "#   #", "#   #", "#   #", "#   #", "#   #", "#####"}};

const Glyph& glyph_of(char character) {
  for (const Glyph& glyph : kGlyphs) {
    if (glyph.character == character) return glyph;
  }
  return kBox;
}

}  // namespace

Canvas::Canvas(std::int64_t height, std::int64_t width, Colour background)
    : pixels_(DType::kUint8, {height, width, 3}) {
  fill(0, 0, height, width, background);
}

void Canvas::fill(std::int64_t y, std::int64_t x, std::int64_t height, std::int64_t width,
                  Colour colour) {
  const std::int64_t rows = pixels_.dim(0), columns = pixels_.dim(1);
  const std::int64_t top = std::max<std::int64_t>(y, 0), bottom = std::min(y + height, rows);
  const std::int64_t left = std::max<std::int64_t>(x, 0), right = std::min(x + width, columns);
  for (std::int64_t row = top; row < bottom; ++row) {
    std::uint8_t* pixel = pixels_.data<std::uint8_t>() + (row * columns + left) * 3;
    for (std::int64_t column = left; column < right; ++column) {
      *pixel++ = colour.red;
      *pixel++ = colour.green;
      *pixel++ = colour.blue;
    }
  }
}

void Canvas::write(std::int64_t y, std::int64_t x, std::string_view text, std::int64_t scale,
                   Colour colour) {
  for (const char character : text) {
    const Glyph& glyph = glyph_of(character);
    for (std::int64_t row = 0; row < kTextHeight; ++row) {
      for (std::int64_t column = 0; column < kGlyphWidth; ++column) {
        if (glyph.rows[row][column] != '#') continue;
        fill(y + row * scale, x + column * scale, scale, scale, colour);
      }
    }
    x += (kGlyphWidth + 1) * scale;
  }
}

std::int64_t Canvas::text_width(std::string_view text, std::int64_t scale) {
  return text.empty() ? 0
                      : (static_cast<std::int64_t>(text.size()) * (kGlyphWidth + 1) - 1) * scale;
}

}  // namespace tandem::data
