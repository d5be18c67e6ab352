#include "tandem/placement/internal/quantity.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace tandem::placement {
namespace {

using Unit = std::pair<std::string_view, double>;

template <std::size_t N>
std::optional<double> parse(std::string_view text, const Unit (&units)[N]) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [unit, factor] : units) {
    if (rest == unit) return number * factor;
  }
  return std::nullopt;
}

constexpr Unit kRates[] = {{"B/s", 1}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
constexpr Unit kBytes[] = {
    {"B", 1}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
constexpr Unit kSeconds[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr Unit kFlops[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}};

}  // namespace

std::optional<double> parse_rate(std::string_view text) { return parse(text, kRates); }
std::optional<double> parse_bytes(std::string_view text) { return parse(text, kBytes); }
std::optional<double> parse_seconds(std::string_view text) { return parse(text, kSeconds); }
std::optional<double> parse_flops(std::string_view text) { return parse(text, kFlops); }

}  // namespace tandem::placement
