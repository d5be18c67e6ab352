#include "tests/reference/value.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <type_traits>

#include "tandem/core/half.h"

namespace reference {
namespace {

static_assert(std::endian::native == std::endian::little, "the files store little-endian elements");

const std::map<std::string, std::size_t>& sizes() {
  static const std::map<std::string, std::size_t> all{
      {"bool", 1},  {"int8", 1},     {"uint8", 1},  {"int16", 2},     {"uint16", 2},
      {"half", 2},  {"bfloat16", 2}, {"int32", 4},  {"uint32", 4},    {"float", 4},
      {"int64", 8}, {"uint64", 8},   {"double", 8}, {"complex64", 8}, {"complex128", 16},
      {"qint8", 1}, {"quint8", 1},   {"qint16", 2}, {"quint16", 2},   {"qint32", 4}};
  return all;
}

std::string base64_decoded(const std::string& text) {
  static const auto table = [] {
    std::array<int, 256> digits{};
    digits.fill(-1);
    const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t i = 0; i < alphabet.size(); ++i) {
      digits[static_cast<unsigned char>(alphabet[i])] = static_cast<int>(i);
    }
    return digits;
  }();
  std::string result;
  result.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    const int digit = table[static_cast<unsigned char>(c)];
    if (digit < 0) throw std::runtime_error("not base64: " + text.substr(0, 40));
    group = (group << 6) | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      result.push_back(static_cast<char>((group >> bits) & 0xffu));
    }
  }
  return result;
}

template <class T>
T load(const std::string& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::string& bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

/// The bits of a floating number as an integer that counts representable values, so that neighbours
/// differ by one.
template <class Bits>
std::int64_t ordinal(Bits bits) {
  using Signed = std::make_signed_t<Bits>;
  const Signed value = static_cast<Signed>(bits);
  return value < 0 ? static_cast<std::int64_t>(std::numeric_limits<Signed>::min()) - value : value;
}

std::int64_t ordinal_at(const Value& value, std::size_t part) {
  if (value.dtype == "half" || value.dtype == "bfloat16") {
    return ordinal(load<std::uint16_t>(value.bytes, part));
  }
  if (value.dtype == "float" || value.dtype == "complex64") {
    return ordinal(load<std::uint32_t>(value.bytes, part));
  }
  return ordinal(load<std::uint64_t>(value.bytes, part));
}

/// The real numbers that make up the value: two an element for complex dtypes.
std::vector<double> parts(const Value& value) {
  std::vector<double> result;
  const bool both = is_complex(value.dtype);
  for (const std::complex<double>& number : numbers(value)) {
    result.push_back(number.real());
    if (both) result.push_back(number.imag());
  }
  return result;
}

bool same_bits(const Value& got, const Value& want, std::size_t part) {
  const std::size_t size = element_size(want.dtype) / (is_complex(want.dtype) ? 2 : 1);
  return std::memcmp(got.bytes.data() + part * size, want.bytes.data() + part * size, size) == 0;
}

/// How far beyond the tolerance: at most 0 is within it.
double excess(const Value& got, const Value& want, std::size_t part, double a, double b,
              const Tolerance& tolerance) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : kFar;
  if (tolerance.exact) return same_bits(got, want, part) ? 0 : kFar;
  if (std::isinf(a) || std::isinf(b)) return a == b ? 0 : kFar;
  if (tolerance.ulps > 0) {
    const double apart =
        std::abs(static_cast<double>(ordinal_at(got, part) - ordinal_at(want, part)));
    return std::max(0.0, apart - tolerance.ulps);
  }
  return std::abs(a - b) - (tolerance.absolute + tolerance.relative * std::abs(b));
}

std::string at(const Value& value, std::size_t element) {
  std::vector<std::int64_t> index(value.shape.size());
  auto rest = static_cast<std::int64_t>(element);
  for (std::size_t axis = value.shape.size(); axis-- > 0;) {
    index[axis] = rest % value.shape[axis];
    rest /= value.shape[axis];
  }
  std::ostringstream out;
  out << "at [";
  for (std::size_t axis = 0; axis < index.size(); ++axis) out << (axis ? "," : "") << index[axis];
  out << "]";
  return out.str();
}

std::string float_difference(const Value& got, const Value& want, const Tolerance& tolerance) {
  const std::vector<double> a = parts(got), b = parts(want);
  const std::size_t per_element = is_complex(want.dtype) ? 2 : 1;
  double worst = 0;
  std::size_t worst_part = 0, wrong = 0;
  for (std::size_t part = 0; part < b.size(); ++part) {
    const double over = excess(got, want, part, a[part], b[part], tolerance);
    if (over <= 0) continue;
    ++wrong;
    if (over > worst || wrong == 1) {
      worst = over;
      worst_part = part;
    }
  }
  if (wrong == 0) return "";
  std::ostringstream out;
  out.precision(9);
  out << wrong << " of " << b.size() << " differ, most " << at(want, worst_part / per_element)
      << ": got " << a[worst_part] << ", want " << b[worst_part];
  if (std::isfinite(a[worst_part]) && std::isfinite(b[worst_part])) {
    out << " (apart " << std::abs(a[worst_part] - b[worst_part]) << ")";
  }
  return out.str();
}

std::string integer_text(const Value& value, std::size_t element) {
  if (value.dtype == "uint64") return std::to_string(load<std::uint64_t>(value.bytes, element));
  if (value.dtype == "int64") return std::to_string(load<std::int64_t>(value.bytes, element));
  return std::to_string(static_cast<std::int64_t>(numbers(value)[element].real()));
}

std::string plain_difference(const Value& got, const Value& want) {
  if (want.dtype == "string") {
    for (std::size_t i = 0; i < want.strings.size(); ++i) {
      if (got.strings[i] != want.strings[i]) {
        return "differs " + at(want, i) + ": got \"" + got.strings[i] + "\", want \"" +
               want.strings[i] + "\"";
      }
    }
    return "";
  }
  const std::size_t size = element_size(want.dtype);
  for (std::size_t i = 0; i < want.bytes.size() / size; ++i) {
    if (std::memcmp(got.bytes.data() + i * size, want.bytes.data() + i * size, size) != 0) {
      return "differs " + at(want, i) + ": got " + integer_text(got, i) + ", want " +
             integer_text(want, i);
    }
  }
  return "";
}

}  // namespace

std::int64_t Value::num_elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::string Value::type() const {
  std::string text = dtype + "[";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    text += (axis ? "," : "") + std::to_string(shape[axis]);
  }
  return text + "]";
}

std::size_t element_size(const std::string& dtype) {
  const auto found = sizes().find(dtype);
  return found == sizes().end() ? 0 : found->second;
}

bool is_floating(const std::string& dtype) {
  return dtype == "float" || dtype == "double" || dtype == "half" || dtype == "bfloat16";
}

bool is_complex(const std::string& dtype) { return dtype == "complex64" || dtype == "complex128"; }

Value decode(const nlohmann::json& record) {
  Value value;
  value.dtype = record.at("dtype").get<std::string>();
  value.shape = record.at("shape").get<std::vector<std::int64_t>>();
  value.literal = record.value("literal", false);
  const auto count = static_cast<std::size_t>(value.num_elements());
  if (value.dtype == "string") {
    for (const auto& text : record.at("strings")) {
      value.strings.push_back(base64_decoded(text.get<std::string>()));
    }
    if (value.strings.size() != count)
      throw std::runtime_error("a record of " + value.type() + " is cut");
    return value;
  }
  value.has_data = record.contains("data");
  if (!value.has_data) return value;
  value.bytes = base64_decoded(record.at("data").get<std::string>());
  if (element_size(value.dtype) == 0 || value.bytes.size() != count * element_size(value.dtype)) {
    throw std::runtime_error("a record of " + value.type() + " has " +
                             std::to_string(value.bytes.size()) + " bytes");
  }
  return value;
}

std::vector<Value> decode_all(const nlohmann::json& records) {
  std::vector<Value> values;
  for (const auto& record : records) values.push_back(record.is_null() ? Value{} : decode(record));
  return values;
}

std::vector<std::complex<double>> numbers(const Value& value) {
  const auto count = static_cast<std::size_t>(value.num_elements());
  const std::string& bytes = value.bytes;
  // Quantised integers are stored as the integers that they are.
  const std::string dtype = value.dtype[0] == 'q' ? value.dtype.substr(1) : value.dtype;
  std::vector<std::complex<double>> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (dtype == "float")
      result[i] = load<float>(bytes, i);
    else if (dtype == "double")
      result[i] = load<double>(bytes, i);
    else if (dtype == "half")
      result[i] = tandem::half_bits_to_float(load<std::uint16_t>(bytes, i));
    else if (dtype == "bfloat16")
      result[i] = float(load<tandem::BFloat16>(bytes, i));
    else if (dtype == "complex64")
      result[i] = load<std::complex<float>>(bytes, i);
    else if (dtype == "complex128")
      result[i] = load<std::complex<double>>(bytes, i);
    else if (dtype == "bool" || dtype == "uint8")
      result[i] = load<std::uint8_t>(bytes, i);
    else if (dtype == "int8")
      result[i] = load<std::int8_t>(bytes, i);
    else if (dtype == "int16")
      result[i] = load<std::int16_t>(bytes, i);
    else if (dtype == "uint16")
      result[i] = load<std::uint16_t>(bytes, i);
    else if (dtype == "int32")
      result[i] = load<std::int32_t>(bytes, i);
    else if (dtype == "uint32")
      result[i] = load<std::uint32_t>(bytes, i);
    else if (dtype == "int64")
      result[i] = static_cast<double>(load<std::int64_t>(bytes, i));
    else if (dtype == "uint64")
      result[i] = static_cast<double>(load<std::uint64_t>(bytes, i));
    else
      throw std::runtime_error("no numbers in " + value.type());
  }
  return result;
}

Value from_numbers(const std::string& dtype, const std::vector<std::int64_t>& shape,
                   const std::vector<std::complex<double>>& numbers) {
  Value value;
  value.dtype = dtype;
  value.shape = shape;
  value.bytes.resize(numbers.size() * element_size(dtype));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double real = numbers[i].real();
    if (dtype == "float")
      store(value.bytes, i, static_cast<float>(real));
    else if (dtype == "double")
      store(value.bytes, i, real);
    else if (dtype == "half")
      store(value.bytes, i, tandem::float_to_half_bits(static_cast<float>(real)));
    else if (dtype == "bfloat16")
      store(value.bytes, i, tandem::float_to_bfloat16_bits(static_cast<float>(real)));
    else if (dtype == "complex64")
      store(value.bytes, i, std::complex<float>(numbers[i]));
    else if (dtype == "complex128")
      store(value.bytes, i, numbers[i]);
    else
      throw std::runtime_error("cannot make " + dtype + " of numbers");
  }
  return value;
}

Tolerance usual_tolerance(const std::string& dtype, double factor) {
  if (dtype == "half") return {4e-3 * factor, 4e-3 * factor};
  if (dtype == "bfloat16") return {2e-2 * factor, 2e-2 * factor};
  if (dtype == "float" || dtype == "complex64") return {1e-5 * factor, 1e-5 * factor};
  return {1e-11 * factor, 1e-12 * factor};
}

std::string difference(const Value& got, const Value& want, const Tolerance& tolerance) {
  if (got.dtype != want.dtype || got.shape != want.shape) {
    return "got " + got.type() + ", want " + want.type();
  }
  if (!want.has_data) return "";
  if (is_floating(want.dtype) || is_complex(want.dtype))
    return float_difference(got, want, tolerance);
  return plain_difference(got, want);
}

}  // namespace reference
