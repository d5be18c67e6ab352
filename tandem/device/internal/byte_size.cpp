#include "tandem/device/internal/byte_size.h"

#include <array>
#include <cstdio>

namespace tandem {
namespace {

std::string scaled(double value, double base, const char* const* units, std::size_t count) {
  std::size_t unit = 0;
  for (; unit + 1 < count && value >= base; ++unit) value /= base;
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f", value < 10 ? 2 : value < 100 ? 1 : 0, value);
  std::string number(text.data());
  if (number.find('.') != std::string::npos) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return number + " " + units[unit];
}

}  // namespace

std::string byte_text(std::size_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return scaled(static_cast<double>(bytes), 1024, kUnits, std::size(kUnits));
}

std::string rate_text(double bytes_per_second) {
  static constexpr const char* kUnits[] = {"B/s", "KB/s", "MB/s", "GB/s"};
  return scaled(bytes_per_second, 1000, kUnits, std::size(kUnits));
}

}  // namespace tandem
