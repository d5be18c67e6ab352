#include "tandem/core/internal/float_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "tandem/core/error.h"

namespace tandem {
namespace {

constexpr int kPrecision = 8;  // NumPy's default: digits after the point

std::string printed(const char* form, int digits, double value) {
  char text[512];
  const int length = std::snprintf(text, sizeof(text), form, digits, value);
  return std::string(text, static_cast<std::size_t>(length));
}

double rounded_to(DType dtype, double value) {
  switch (dtype) {
    case DType::kHalf: return static_cast<float>(Half(static_cast<float>(value)));
    case DType::kBFloat16: return static_cast<float>(BFloat16(static_cast<float>(value)));
    case DType::kFloat:
    case DType::kComplex64: return static_cast<float>(value);
    default: return value;
  }
}

template <class T>
std::string shortest_of(T value, std::chars_format format) {
  char text[512];
  return std::string(text, std::to_chars(text, text + sizeof(text), value, format).ptr);
}

// The decimal of fewest digits that reads back as the same half or bfloat16, as a double. Below a
// power of two values lie closer, so that the nearest decimal may fail where the next one away from
// zero does not.
double shortest_decimal(DType dtype, double value) {
  for (int digits = 0; digits < 8; ++digits) {
    const std::string nearest = printed("%.*e", digits, value);
    const std::size_t e = nearest.find('e');
    std::string mantissa = nearest.substr(0, e);
    std::erase(mantissa, '.');
    const long away = std::strtol(mantissa.c_str(), nullptr, 10) + (value < 0 ? -1 : 1);
    const long exponent = std::strtol(nearest.c_str() + e + 1, nullptr, 10) - digits;
    for (const std::string& text : {nearest, cat(away, "e", exponent)}) {
      const double back = std::strtod(text.c_str(), nullptr);
      if (rounded_to(dtype, back) == value) return back;
    }
  }
  return value;
}

// The fewest digits that read back as the same value of the dtype.
std::string shortest(DType dtype, double value, std::chars_format format) {
  switch (dtype) {
    case DType::kFloat:
    case DType::kComplex64: return shortest_of(static_cast<float>(value), format);
    case DType::kHalf:
    case DType::kBFloat16: return shortest_of(shortest_decimal(dtype, value), format);
    default: return shortest_of(value, format);
  }
}

// Without the zeros at the end of the digits of "1.500e+10" or "1.500"; the point stays.
std::string trimmed(std::string text) {
  const std::size_t end = std::min(text.find('e'), text.size());
  std::size_t last = end;
  while (last > 0 && text[last - 1] == '0') --last;
  return text.erase(last, end - last);
}

std::size_t fraction_digits(const std::string& text) {
  const std::size_t point = text.find('.');
  if (point == std::string::npos) return 0;
  return std::min(text.find('e'), text.size()) - point - 1;
}

void add_point(std::string& text) {
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".");
}

// From here on numbers are written with an exponent: as many digits as the dtype has for certain.
double scientific_from(DType dtype, double limit) {
  switch (dtype) {
    case DType::kHalf: return 1e3;
    case DType::kBFloat16:
    case DType::kFloat:
    case DType::kComplex64: return 1e6;
    default: return limit;
  }
}

std::string not_finite(double value) {
  return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

}  // namespace

std::string float_part_text(DType dtype, double value) {
  if (!std::isfinite(value)) return not_finite(value);
  const double size = std::abs(value);
  const bool positional = size == 0 || (size >= 1e-4 && size < scientific_from(dtype, 1e16));
  return shortest(dtype, value,
                  positional ? std::chars_format::fixed : std::chars_format::scientific);
}

std::string fixed_text(double value, int digits) {
  constexpr double kLong = 1e15;
  char text[64];
  const bool is_long = !(std::abs(value) < kLong);
  char* const end = text + sizeof(text);
  const auto written = is_long ? std::to_chars(text, end, value, std::chars_format::general, 3)
                               : std::to_chars(text, end, value, std::chars_format::fixed, digits);
  return {text, written.ptr};
}

std::string float_scalar_text(DType dtype, double value) {
  // ml_dtypes' scalars print six digits, as C++ streams do.
  if (dtype == DType::kBFloat16 && std::isfinite(value)) return printed("%.*g", 6, value);
  std::string text = float_part_text(dtype, value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

FloatFormat::FloatFormat(DType dtype, const std::vector<double>& values, bool always_sign)
    : dtype_(dtype), always_sign_(always_sign) {
  double largest = 0, smallest = std::numeric_limits<double>::infinity();
  for (const double v : values) {
    if (!std::isfinite(v) || v == 0) continue;
    largest = std::max(largest, std::abs(v));
    smallest = std::min(smallest, std::abs(v));
  }
  // NumPy compares in the values' own dtype.
  scientific_ = largest > 0 &&
                (largest >= scientific_from(dtype, 1e8) || smallest < rounded_to(dtype, 1e-4) ||
                 rounded_to(dtype, largest / smallest) > 1000);
  measure(values);
}

void FloatFormat::measure(const std::vector<double>& values) {
  bool any_finite = false, any_other = false, any_sign = always_sign_;
  for (const double v : values) {
    if (!std::isfinite(v)) {
      any_other = true;
      any_sign = any_sign || v == -std::numeric_limits<double>::infinity();
      continue;
    }
    any_finite = true;
    const std::string text = scientific_ ? scientific(v, kPrecision) : positional(v);
    left_ = std::max(left_, text.find('.'));
    right_ = std::max(right_, fraction_digits(text));
    if (scientific_) exponent_ = std::max(exponent_, text.size() - text.find('e') - 2);
  }
  if (scientific_) {
    digits_ = static_cast<int>(right_);
    right_ += exponent_ + 2;
  }
  // "nan", "inf" and "-inf" end where the others do.
  const std::size_t width = any_other ? (any_sign ? 4 : 3) : 0;
  const std::size_t right = (any_finite ? right_ : 0) + 1;
  if (width > right) left_ = std::max(left_, width - right);
}

std::string FloatFormat::positional(double value) const {
  std::string text = shortest(dtype_, value, std::chars_format::fixed);
  if (fraction_digits(text) > kPrecision) text = printed("%.*f", kPrecision, value);
  add_point(text);
  text = trimmed(text);
  return always_sign_ && !std::signbit(value) ? "+" + text : text;
}

// With the digits that the value needs, but at most so many.
std::string FloatFormat::scientific(double value, int digits) const {
  std::string text = shortest(dtype_, value, std::chars_format::scientific);
  if (fraction_digits(text) > static_cast<std::size_t>(digits)) {
    text = trimmed(printed("%.*e", digits, value));
  }
  add_point(text);
  return always_sign_ && !std::signbit(value) ? "+" + text : text;
}

std::string FloatFormat::operator()(double value) const {
  if (!std::isfinite(value)) {
    std::string text = not_finite(value);
    if (always_sign_ && !(value < 0)) text.insert(0, "+");
    const std::size_t width = left_ + right_ + 1;
    return std::string(width - std::min(width, text.size()), ' ') + text;
  }
  std::string text;
  if (scientific_) {
    // Here NumPy shows digits of the value itself, not of its shortest form.
    text = printed("%.*e", digits_, value);
    add_point(text);
    const std::size_t at = text.find('e') + 2;
    const std::size_t have = text.size() - at;
    if (have < exponent_) text.insert(at, exponent_ - have, '0');
    if (always_sign_ && !std::signbit(value)) text.insert(0, "+");
  } else {
    text = positional(value);
    text.append(right_ - fraction_digits(text), ' ');
  }
  const std::size_t point = text.find('.');
  if (point < left_) text.insert(0, left_ - point, ' ');
  return text;
}

}  // namespace tandem
