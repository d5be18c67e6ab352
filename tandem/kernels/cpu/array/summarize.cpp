#include "tandem/kernels/cpu/array/summarize.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <type_traits>

#include "tandem/core/resource_handle.h"
#include "tandem/core/variant.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// The smaller of two numbers of digits that preserves the value.
std::string number(double value, bool is_float) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[40];
  std::snprintf(text, sizeof(text), "%.*g", is_float ? 6 : 15, value);
  const bool same = is_float ? std::strtof(text, nullptr) == static_cast<float>(value)
                             : std::strtod(text, nullptr) == value;
  if (!same) std::snprintf(text, sizeof(text), "%.*g", is_float ? 9 : 17, value);
  return text;
}

std::string escaped(std::string_view s) {
  std::string text;
  for (const char c : s) {
    switch (c) {
      case '\n': text += "\\n"; break;
      case '\r': text += "\\r"; break;
      case '\t': text += "\\t"; break;
      case '"': text += "\\\""; break;
      case '\'': text += "\\'"; break;
      case '\\': text += "\\\\"; break;
      default:
        if (static_cast<unsigned char>(c) >= ' ' && c != 127) {
          text += c;
        } else {
          char octal[8];
          std::snprintf(octal, sizeof(octal), "\\%03o",
                        static_cast<unsigned>(static_cast<unsigned char>(c)));
          text += octal;
        }
    }
  }
  return text;
}

std::string element(const Array& value, std::int64_t i, bool quoted) {
  switch (value.dtype()) {
    case DType::kString: {
      const std::string text = escaped(value.data<std::string>()[i]);
      return quoted ? "\"" + text + "\"" : text;
    }
    case DType::kBool: return value.data<bool>()[i] ? "1" : "0";
    case DType::kFloat: return number(value.data<float>()[i], true);
    case DType::kDouble: return number(value.data<double>()[i], false);
    case DType::kHalf: return number(static_cast<float>(value.data<Half>()[i]), true);
    case DType::kBFloat16: return number(static_cast<float>(value.data<BFloat16>()[i]), true);
    case DType::kComplex64: {
      const auto z = value.data<std::complex<float>>()[i];
      return "(" + number(z.real(), true) + "," + number(z.imag(), true) + ")";
    }
    case DType::kComplex128: {
      const auto z = value.data<std::complex<double>>()[i];
      return "(" + number(z.real(), false) + "," + number(z.imag(), false) + ")";
    }
    case DType::kResource: {
      const ResourceHandle& handle = value.data<ResourceHandle>()[i];
      return handle.empty() ? "<no resource>" : "<resource " + handle.info().name + ">";
    }
    default: break;
  }
  if (!is_integer(value.dtype())) return "<" + dtype_name(value.dtype()) + ">";
  std::string text;
  with_integer(value.dtype(), [&]<class T>() { text = std::to_string(value.data<T>()[i]); });
  return text;
}

class Summary {
 public:
  Summary(const Array& value, std::int64_t ends) : value_(value), ends_(ends) { add(0, 0); }
  std::string take() { return std::move(text_); }

 private:
  void space(int axis) {
    const int inner = value_.rank() - axis - 1;
    if (inner == 0) {
      text_ += ' ';
    } else {
      text_.append(static_cast<std::size_t>(inner), '\n');
      text_.append(static_cast<std::size_t>(axis) + 1, ' ');
    }
  }
  void add(int axis, std::int64_t first) {
    if (axis == value_.rank()) {
      text_ += element(value_, first, true);
      return;
    }
    const Shape& shape = value_.shape();
    const std::int64_t size = shape[axis], step = shape.product(axis + 1, shape.rank());
    text_ += '[';
    const std::int64_t front = std::min(ends_, size);
    for (std::int64_t i = 0; i < front; ++i) {
      if (i > 0) space(axis);
      add(axis + 1, first + i * step);
    }
    if (size - ends_ > ends_) {
      space(axis);
      text_ += "...";
    }
    for (std::int64_t i = std::max(ends_, size - ends_); i < size; ++i) {
      space(axis);
      add(axis + 1, first + i * step);
    }
    text_ += ']';
  }
  const Array& value_;
  std::int64_t ends_;
  std::string text_;
};

class FlatSummary {
 public:
  FlatSummary(const Array& value, std::int64_t most) : value_(value), most_(most) {
    add(0);
    if (value.num_elements() > most) text_ += "...";
  }
  std::string take() { return std::move(text_); }

 private:
  void add(int axis) {
    if (next_ >= most_) return;
    const int rank = value_.rank();
    const std::int64_t size = rank == 0 ? 1 : value_.shape()[axis];
    for (std::int64_t i = 0; i < size; ++i) {
      if (axis + 1 >= rank) {
        if (next_ >= most_) {
          if (axis != 0) text_ += "...";
          return;
        }
        if (i > 0) text_ += ' ';
        text_ += element(value_, next_++, false);
        continue;
      }
      const bool shown = next_ < most_;
      if (shown) text_ += '[';
      add(axis + 1);
      if (shown) text_ += ']';
    }
  }
  const Array& value_;
  std::int64_t most_, next_ = 0;
  std::string text_;
};

}  // namespace

std::string summarize(const Array& value, std::int64_t ends) {
  const std::int64_t all = value.num_elements();
  return Summary(value, ends < 0 ? all : std::min(ends, all)).take();
}

std::string summarize_flat(const Array& value, std::int64_t most) {
  const std::int64_t all = value.num_elements();
  return FlatSummary(value, most < 0 ? all : std::min(most, all)).take();
}

}  // namespace tandem::cpu
