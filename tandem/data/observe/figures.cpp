#include "tandem/data/observe/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace tandem::data {
namespace {

// Three digits: 1.23, 12.3, 123.
std::string three_digits(double value) {
  std::ostringstream out;
  const double size = std::abs(value);
  out << std::fixed << std::setprecision(size < 9.995 ? 2 : size < 99.95 ? 1 : 0) << value;
  return std::move(out).str();
}

}  // namespace

std::string time_text(double seconds) {
  if (seconds <= 0) return "0 s";
  struct Unit {
    double size;
    const char* name;
  };
  constexpr std::array<Unit, 4> kUnits = {{{1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}, {1e-9, " ns"}}};
  for (const Unit& unit : kUnits) {
    if (seconds >= 0.9995 * unit.size) return three_digits(seconds / unit.size) + unit.name;
  }
  return "< 1 ns";
}

std::string percent_text(double share) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << 100 * share << " %";
  return std::move(out).str();
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {" B", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  while (bytes >= 1023.5 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  const bool whole = unit == 0 && bytes == std::floor(bytes);
  return (whole ? number_text(bytes) : three_digits(bytes)) + kUnits[unit];
}

std::string number_text(double number) {
  if (std::abs(number) < 99.95 && number != std::floor(number)) return three_digits(number);
  std::ostringstream out;
  out << std::fixed << std::setprecision(0) << number;
  std::string text = std::move(out).str();
  const std::size_t digits_begin = text[0] == '-' ? 1 : 0;
  for (std::size_t at = text.size(); at > digits_begin + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace tandem::data
