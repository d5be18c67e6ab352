#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <functional>
#include <sstream>

#include "tandem/core/array.h"
#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/core/variant.h"

namespace tandem {
namespace {

// NumPy's defaults: axes of more than 1000 elements in all show three at each end, eight digits after the point.
constexpr std::int64_t kThreshold = 1000;
constexpr std::int64_t kEdge = 3;
constexpr int kPrecision = 8;
constexpr std::size_t kLineWidth = 75;

std::vector<std::int64_t> shown_indices(std::int64_t size, bool shorten) {
  std::vector<std::int64_t> indices;
  if (!shorten || size <= 2 * kEdge) {
    for (std::int64_t i = 0; i < size; ++i) indices.push_back(i);
    return indices;
  }
  for (std::int64_t i = 0; i < kEdge; ++i) indices.push_back(i);
  indices.push_back(-1);
  for (std::int64_t i = size - kEdge; i < size; ++i) indices.push_back(i);
  return indices;
}

double as_double(const Array& a, std::int64_t i) {
  switch (a.dtype()) {
    case DType::kFloat: return a.data<float>()[i];
    case DType::kHalf: return static_cast<float>(a.data<Half>()[i]);
    case DType::kBFloat16: return static_cast<float>(a.data<BFloat16>()[i]);
    default: return a.data<double>()[i];
  }
}

// The shortest digits that read back as the same value of that dtype, without exponent.
std::string shortest(const Array& a, double value, bool scientific) {
  char text[512];
  for (int digits = 0; digits <= kPrecision; ++digits) {
    std::snprintf(text, sizeof(text), scientific ? "%.*e" : "%.*f", digits, value);
    const double back = std::strtod(text, nullptr);
    const bool same = a.dtype() == DType::kFloat      ? static_cast<float>(back) == static_cast<float>(value)
                      : a.dtype() == DType::kHalf     ? Half(static_cast<float>(back)) == Half(static_cast<float>(value))
                      : a.dtype() == DType::kBFloat16 ? BFloat16(static_cast<float>(back)) == BFloat16(static_cast<float>(value))
                                                      : back == value;
    if (same) break;
  }
  return text;
}

// All floats of one print share a form: fixed with equal digits after the point, or scientific.
class FloatFormat {
 public:
  FloatFormat(const Array& a, const std::vector<std::int64_t>& shown) : a_(a) {
    double largest = 0, smallest = INFINITY;
    for (std::int64_t i : shown) {
      const double v = std::abs(as_double(a, i));
      if (!std::isfinite(v) || v == 0) continue;
      largest = std::max(largest, v);
      smallest = std::min(smallest, v);
    }
    scientific_ = largest >= 1e8 || (largest > 0 && (smallest < 1e-4 || largest / smallest > 1000));
    if (scientific_ && largest < 1e8 && smallest >= 1e-4 && largest / smallest <= 1e3) scientific_ = false;
    for (std::int64_t i : shown) {
      const double v = as_double(a, i);
      if (!std::isfinite(v)) continue;
      const std::string text = shortest(a, v, scientific_);
      const std::size_t point = text.find('.');
      if (point == std::string::npos) continue;
      const std::size_t end = scientific_ ? text.find('e') : text.size();
      fraction_ = std::max(fraction_, static_cast<int>(end - point - 1));
    }
  }

  std::string operator()(std::int64_t i) const {
    const double v = as_double(a_, i);
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    char text[512];
    std::snprintf(text, sizeof(text), scientific_ ? "%.*e" : "%.*f", fraction_, v);
    std::string result = text;
    if (!scientific_) {
      if (fraction_ == 0) return result + ".";
      // NumPy trims zeros that this element does not need and pads with blanks instead.
      std::size_t last = result.find_last_not_of('0');
      result.replace(last + 1, std::string::npos, std::string(result.size() - last - 1, ' '));
    }
    return result;
  }

 private:
  const Array& a_;
  bool scientific_ = false;
  int fraction_ = 0;
};

class Printer {
 public:
  explicit Printer(const Array& a) : a_(a), shorten_(a.num_elements() > kThreshold) { collect(0, 0); }

  std::string run() {
    if (a_.num_elements() == 0) return empty();
    prepare();
    std::string text;
    print(text, 0, 0);
    return text;
  }

 private:
  std::int64_t stride(int axis) const { return a_.shape().product(axis + 1, a_.rank()); }

  void collect(int axis, std::int64_t base) {
    if (axis == a_.rank()) {
      shown_.push_back(base);
      return;
    }
    for (std::int64_t i : shown_indices(a_.shape()[axis], shorten_)) {
      if (i >= 0) collect(axis + 1, base + i * stride(axis));
    }
  }

  std::string empty() const {
    return a_.rank() == 1 ? "[]" : cat("[] (shape ", a_.shape(), ")");
  }

  void prepare() {
    if (is_floating(a_.dtype())) {
      FloatFormat format(a_, shown_);
      element_ = [format](std::int64_t i) { return format(i); };
    } else {
      element_ = [this](std::int64_t i) { return plain(i); };
    }
    for (std::int64_t i : shown_) width_ = std::max(width_, element_(i).size());
  }

  std::string plain(std::int64_t i) const {
    switch (a_.dtype()) {
      case DType::kBool: return a_.data<bool>()[i] ? "True" : "False";
      case DType::kInt8: return cat(static_cast<int>(a_.data<std::int8_t>()[i]));
      case DType::kInt16: return cat(a_.data<std::int16_t>()[i]);
      case DType::kInt32: return cat(a_.data<std::int32_t>()[i]);
      case DType::kInt64: return cat(a_.data<std::int64_t>()[i]);
      case DType::kUint8: return cat(static_cast<int>(a_.data<std::uint8_t>()[i]));
      case DType::kUint16: return cat(a_.data<std::uint16_t>()[i]);
      case DType::kUint32: return cat(a_.data<std::uint32_t>()[i]);
      case DType::kUint64: return cat(a_.data<std::uint64_t>()[i]);
      case DType::kComplex64: return complex_text(a_.data<std::complex<float>>()[i]);
      case DType::kComplex128: return complex_text(a_.data<std::complex<double>>()[i]);
      case DType::kString: return "'" + a_.data<std::string>()[i] + "'";
      case DType::kVariant: {
        const Variant& v = a_.data<Variant>()[i];
        return v.empty() ? "<empty variant>" : "<" + v.get()->debug_string() + ">";
      }
      case DType::kResource: {
        const ResourceHandle& h = a_.data<ResourceHandle>()[i];
        return h.empty() ? "<empty resource>" : "<resource " + h.info().name + ">";
      }
      default: return cat("<", a_.dtype(), ">");
    }
  }

  template <class T>
  static std::string complex_text(std::complex<T> c) {
    return cat(c.real(), std::signbit(c.imag()) ? "" : "+", c.imag(), "j");
  }

  void print(std::string& out, int axis, std::int64_t base) const {
    if (axis == a_.rank()) {
      const std::string text = element_(base);
      if (a_.rank() > 0 && a_.dtype() != DType::kString) out.append(width_ - text.size(), ' ');
      out += text;
      if (a_.rank() == 0) out.erase(out.find_last_not_of(' ') + 1);
      return;
    }
    out += '[';
    const bool innermost = axis + 1 == a_.rank();
    std::size_t line = out.size() - (out.rfind('\n') == std::string::npos ? 0 : out.rfind('\n') + 1);
    bool first = true;
    for (std::int64_t i : shown_indices(a_.shape()[axis], shorten_)) {
      if (!first) {
        if (innermost) {
          if (line + width_ + 1 > kLineWidth) {
            out += '\n' + std::string(static_cast<std::size_t>(axis) + 1, ' ');
            line = static_cast<std::size_t>(axis) + 1;
          } else {
            out += ' ';
            ++line;
          }
        } else {
          out += std::string(static_cast<std::size_t>(a_.rank() - axis - 1), '\n') +
                 std::string(static_cast<std::size_t>(axis) + 1, ' ');
        }
      }
      first = false;
      if (i < 0) {
        out += "...";
      } else {
        print(out, axis + 1, base + i * stride(axis));
      }
      line += width_;
    }
    out += ']';
  }

  const Array& a_;
  bool shorten_;
  std::vector<std::int64_t> shown_;
  std::function<std::string(std::int64_t)> element_;
  std::size_t width_ = 0;
};

}  // namespace

std::string Array::to_string() const { return valid() ? Printer(*this).run() : "<no value>"; }

}  // namespace tandem
