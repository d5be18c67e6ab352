#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/error.h"
#include "tandem/core/internal/float_text.h"
#include "tandem/core/resource_handle.h"
#include "tandem/core/variant.h"

namespace tandem {
namespace {

// NumPy's defaults: beyond 1000 elements axes show three at each end, and lines have 75 characters.
constexpr std::int64_t kThreshold = 1000;
constexpr std::int64_t kEdge = 3;
constexpr std::size_t kLineWidth = 75;
constexpr std::int64_t kDots = -1;

double real_of(const Array& a, std::int64_t i) {
  switch (a.dtype()) {
    case DType::kFloat: return a.data<float>()[i];
    case DType::kHalf: return static_cast<float>(a.data<Half>()[i]);
    case DType::kBFloat16: return static_cast<float>(a.data<BFloat16>()[i]);
    case DType::kComplex64: return a.data<std::complex<float>>()[i].real();
    case DType::kComplex128: return a.data<std::complex<double>>()[i].real();
    default: return a.data<double>()[i];
  }
}

double imaginary_of(const Array& a, std::int64_t i) {
  return a.dtype() == DType::kComplex64 ? a.data<std::complex<float>>()[i].imag()
                                        : a.data<std::complex<double>>()[i].imag();
}

// The text of bytes as Python writes it: b'it\xff', b"it's".
std::string bytes_text(const std::string& bytes) {
  const bool doubled =
      bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
  const char quote = doubled ? '"' : '\'';
  std::string text = std::string("b") + quote;
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\\' || c == quote) {
      text += std::string("\\") + c;
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\r') {
      text += "\\r";
    } else if (code < 0x20 || code >= 0x7f) {
      constexpr const char* kHex = "0123456789abcdef";
      text += std::string("\\x") + kHex[code >> 4] + kHex[code & 15];
    } else {
      text += c;
    }
  }
  return text + quote;
}

std::string integer_text(const Array& a, std::int64_t i) {
  switch (a.dtype()) {
    case DType::kInt16:
    case DType::kQint16: return std::to_string(a.data<std::int16_t>()[i]);
    case DType::kInt32:
    case DType::kQint32: return std::to_string(a.data<std::int32_t>()[i]);
    case DType::kInt64: return std::to_string(a.data<std::int64_t>()[i]);
    case DType::kUint8:
    case DType::kQuint8:
    case DType::kUint4:
    case DType::kUint2: return std::to_string(a.data<std::uint8_t>()[i]);
    case DType::kUint16:
    case DType::kQuint16: return std::to_string(a.data<std::uint16_t>()[i]);
    case DType::kUint32: return std::to_string(a.data<std::uint32_t>()[i]);
    case DType::kUint64: return std::to_string(a.data<std::uint64_t>()[i]);
    default: return std::to_string(a.data<std::int8_t>()[i]);
  }
}

std::string object_text(const Array& a, std::int64_t i) {
  if (a.dtype() == DType::kString) return bytes_text(a.data<std::string>()[i]);
  if (a.dtype() == DType::kVariant) {
    const Variant& v = a.data<Variant>()[i];
    return v.empty() ? "<empty variant>" : "<" + v.get()->debug_string() + ">";
  }
  const ResourceHandle& h = a.data<ResourceHandle>()[i];
  return h.empty() ? "<empty resource>" : "<resource " + h.info().name + ">";
}

std::string float8_text(const Array& a, std::int64_t i) {
  return cat("<", a.dtype(), " bits ", static_cast<int>(a.data<std::uint8_t>()[i]), ">");
}

bool is_float8(DType t) { return t >= DType::kFloat8E5M2 && t <= DType::kFloat8E5M2FNUZ; }

std::string scalar_text(const Array& a) {
  const DType t = a.dtype();
  if (is_floating(t)) return float_scalar_text(t, real_of(a, 0));
  if (is_complex(t)) {
    const double re = real_of(a, 0), im = imaginary_of(a, 0);
    const std::string imaginary = float_part_text(t, im) + "j";
    if (re == 0 && !std::signbit(re)) return imaginary;
    return "(" + float_part_text(t, re) + (imaginary[0] == '-' ? "" : "+") + imaginary + ")";
  }
  if (t == DType::kBool) return *a.data<bool>() ? "True" : "False";
  if (is_object(t)) return object_text(a, 0);
  return is_float8(t) ? float8_text(a, 0) : integer_text(a, 0);
}

using ElementText = std::function<std::string(std::int64_t)>;

ElementText float_elements(const Array& a, const std::vector<std::int64_t>& shown) {
  std::vector<double> values;
  for (const std::int64_t i : shown) values.push_back(real_of(a, i));
  return [&a, format = FloatFormat(a.dtype(), values)](std::int64_t i) {
    return format(real_of(a, i));
  };
}

ElementText complex_elements(const Array& a, const std::vector<std::int64_t>& shown) {
  std::vector<double> real, imaginary;
  for (const std::int64_t i : shown) {
    real.push_back(real_of(a, i));
    imaginary.push_back(imaginary_of(a, i));
  }
  return [&a, re = FloatFormat(a.dtype(), real),
          im = FloatFormat(a.dtype(), imaginary, true)](std::int64_t i) {
    std::string text = im(imaginary_of(a, i));
    text.insert(text.find_last_not_of(' ') + 1, "j");
    return re(real_of(a, i)) + text;
  };
}

// Right-aligned to the widest.
ElementText aligned(const std::vector<std::int64_t>& shown, const ElementText& text) {
  std::size_t width = 0;
  for (const std::int64_t i : shown) width = std::max(width, text(i).size());
  return [text, width](std::int64_t i) {
    const std::string one = text(i);
    return std::string(width - std::min(width, one.size()), ' ') + one;
  };
}

class Printer {
 public:
  explicit Printer(const Array& a) : a_(a), shorten_(a.num_elements() > kThreshold) {
    collect(0, 0);
    const DType t = a.dtype();
    if (is_floating(t)) {
      element_ = float_elements(a_, shown_);
    } else if (is_complex(t)) {
      element_ = complex_elements(a_, shown_);
    } else if (t == DType::kBool) {
      element_ = [&a](std::int64_t i) { return a.data<bool>()[i] ? " True" : "False"; };
    } else if (is_object(t)) {
      element_ = [&a](std::int64_t i) { return object_text(a, i); };
    } else if (is_float8(t)) {
      element_ = [&a](std::int64_t i) { return float8_text(a, i); };
    } else {
      element_ = aligned(shown_, [&a](std::int64_t i) { return integer_text(a, i); });
    }
  }

  std::string run() const { return print(0, 0, " ", kLineWidth); }

 private:
  std::int64_t stride(int axis) const { return a_.shape().product(axis + 1, a_.rank()); }

  // The indices of an axis that show, kDots where some are left out.
  std::vector<std::int64_t> shown_on(int axis) const {
    const std::int64_t size = a_.shape()[axis];
    const bool dots = shorten_ && size > 2 * kEdge;
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < size; ++i) {
      if (dots && i == kEdge) {
        indices.push_back(kDots);
        i = size - kEdge;
      }
      indices.push_back(i);
    }
    return indices;
  }

  void collect(int axis, std::int64_t base) {
    if (axis == a_.rank()) {
      shown_.push_back(base);
      return;
    }
    for (const std::int64_t i : shown_on(axis)) {
      if (i != kDots) collect(axis + 1, base + i * stride(axis));
    }
  }

  // `indent` is what a line of this axis begins with. Lines get shorter by a bracket with each
  // axis.
  std::string print(int axis, std::int64_t base, const std::string& indent,
                    std::size_t width) const {
    if (axis == a_.rank()) return element_(base);
    std::string text;
    if (axis + 1 == a_.rank()) {
      text = print_row(axis, base, indent, width - 1);
    } else {
      const std::string separator(static_cast<std::size_t>(a_.rank() - axis - 1), '\n');
      for (const std::int64_t i : shown_on(axis)) {
        if (!text.empty()) text += separator;
        text += indent + (i == kDots
                              ? "..."
                              : print(axis + 1, base + i * stride(axis), indent + " ", width - 1));
      }
    }
    return "[" + text.substr(indent.size()) + "]";
  }

  std::string print_row(int axis, std::int64_t base, const std::string& indent,
                        std::size_t width) const {
    std::string text, line = indent;
    bool first = true;
    for (const std::int64_t i : shown_on(axis)) {
      if (!first) line += ' ';
      first = false;
      const std::string word = i == kDots ? "..." : element_(base + i);
      // A line that holds nothing yet would not get shorter by a new one.
      if (line.size() + word.size() > width && line.size() > indent.size()) {
        text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
        line = indent;
      }
      line += word;
    }
    return text + line;
  }

  const Array& a_;
  const bool shorten_;
  std::vector<std::int64_t> shown_;
  ElementText element_;
};

}  // namespace

std::string Array::to_string() const {
  if (!valid()) return "<no value>";
  if (rank() == 0) return scalar_text(*this);
  if (num_elements() == 0) return "[]";
  return Printer(*this).run();
}

}  // namespace tandem
