// Numbers as text and text as numbers.

#include <stdlib.h>

#include <complex>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tandem/core/csv.h"
#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/summarize.h"
#include "tandem/kernels/cpu/string/map_strings.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// ---- AsString ----

// A printf conversion up to its letter, from the attributes.
std::string conversion_of(const KernelContext& c, DType dtype) {
  const auto precision = c.attr<std::int64_t>("precision");
  const auto width = c.attr<std::int64_t>("width");
  const auto& fill = c.attr<std::string>("fill");
  const bool scientific = c.attr<bool>("scientific"), shortest = c.attr<bool>("shortest");
  const bool plain = !is_floating(dtype) && !is_complex(dtype) && dtype != DType::kString;
  if (plain && (scientific || shortest)) {
    throw InvalidArgumentError(
        cat("scientific and shortest format not supported for datatype ", dtype));
  }
  if (plain && precision >= 0) {
    throw InvalidArgumentError(cat("precision not supported for datatype ", dtype));
  }
  if (fill.size() > 1) {
    throw InvalidArgumentError("Fill string must be one or fewer characters");
  }
  if (scientific && shortest) {
    throw InvalidArgumentError("Cannot select both scientific and shortest notation");
  }
  if (!fill.empty() && std::string_view(" +-0#").find(fill[0]) == std::string_view::npos) {
    throw InvalidArgumentError(cat("Fill argument not supported: \"", fill, "\""));
  }
  constexpr std::int64_t kMax = 1 << 20;
  if (width > kMax || precision > kMax) {
    throw InvalidArgumentError(cat("width and precision must not exceed ", kMax, "."));
  }
  std::string format = "%" + fill;
  if (width > -1) format += std::to_string(width);
  if (precision > -1) format += "." + std::to_string(precision);
  return format;
}

template <class T>
void append_formatted(const std::string& format, T value, std::string& text) {
  char buffer[128];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int size = std::snprintf(buffer, sizeof(buffer), format.c_str(), value);
  if (size < 0) throw InternalError(cat("Numbers cannot be printed by ", format, "."));
  if (static_cast<std::size_t>(size) < sizeof(buffer)) {
    text.append(buffer, static_cast<std::size_t>(size));
    return;
  }
  std::string large(static_cast<std::size_t>(size) + 1, '\0');
  std::snprintf(large.data(), large.size(), format.c_str(), value);
#pragma GCC diagnostic pop
  text.append(large, 0, static_cast<std::size_t>(size));
}

std::string padded(const std::string& s, std::int64_t width, bool left) {
  if (static_cast<std::int64_t>(s.size()) >= width) return s;
  const std::string space(static_cast<std::size_t>(width) - s.size(), ' ');
  return left ? s + space : space + s;
}

void as_string(KernelContext& c) {
  const Array& in = c.input(0);
  const DType dtype = in.dtype();
  std::string format = conversion_of(c, dtype);
  Array& out = c.allocate_output(0, in.shape());
  std::string* to = out.data<std::string>();
  const std::int64_t count = in.num_elements();
  if (dtype == DType::kBool) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = in.data<bool>()[i] ? "true" : "false";
  } else if (dtype == DType::kString) {
    const auto width = c.attr<std::int64_t>("width");
    const bool left = c.attr<std::string>("fill") == "-";
    for (std::int64_t i = 0; i < count; ++i) to[i] = padded(in.data<std::string>()[i], width, left);
  } else if (is_integer(dtype)) {
    format += is_signed_integer(dtype) ? "lld" : "llu";
    with_integer(dtype, [&]<class T>() {
      using Wide = std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>;
      for (std::int64_t i = 0; i < count; ++i) {
        to[i].clear();
        append_formatted(format, static_cast<Wide>(in.data<T>()[i]), to[i]);
      }
    });
  } else {
    format += c.attr<bool>("shortest") ? "g" : c.attr<bool>("scientific") ? "e" : "f";
    with_number(dtype, [&]<class T>() {
      const T* from = in.data<T>();
      for (std::int64_t i = 0; i < count; ++i) {
        to[i].clear();
        if constexpr (is_complex_type<T>) {
          to[i] += '(';
          append_formatted(format, static_cast<double>(from[i].real()), to[i]);
          to[i] += ',';
          append_formatted(format, static_cast<double>(from[i].imag()), to[i]);
          to[i] += ')';
        } else {
          append_formatted(format, static_cast<double>(widen(from[i])), to[i]);
        }
      }
    });
  }
}

// ---- StringToNumber ----

template <class T>
void to_number(KernelContext& c) {
  map_strings<T>(c, 60, [](const std::string& s) {
    T value{};
    if (!parse_number(s, value)) {
      throw InvalidArgumentError(cat("StringToNumberOp could not correctly convert string: ", s));
    }
    return value;
  });
}

// ---- StringFormat ----

void format(KernelContext& c) {
  std::string_view rest = c.attr<std::string>("template");
  const auto& placeholder = c.attr<std::string>("placeholder");
  const auto ends = c.attr<std::int64_t>("summarize");
  std::vector<std::string_view> pieces;
  while (!placeholder.empty()) {
    const std::size_t at = rest.find(placeholder);
    if (at == std::string_view::npos) break;
    pieces.push_back(rest.substr(0, at));
    rest.remove_prefix(at + placeholder.size());
  }
  if (pieces.size() != static_cast<std::size_t>(c.num_inputs())) {
    throw InvalidArgumentError(cat("num placeholders in template and num inputs must match: ",
                                   pieces.size(), " vs. ", c.num_inputs()));
  }
  std::string text;
  for (int i = 0; i < c.num_inputs(); ++i) {
    text += pieces[static_cast<std::size_t>(i)];
    text += summarize(c.input(i), ends);
  }
  text += rest;
  *c.allocate_output(0, Shape{}).data<std::string>() = std::move(text);
}

constexpr DTypeSet kTextTypes = kNumberTypes | DTypeSet{DType::kBool, DType::kString};
const KernelRegistration kAsString{
    {.op = "AsString", .types = {{"T", kTextTypes}}, .run = as_string}};
const KernelRegistration kFormat{{.op = "StringFormat", .run = format}};

template <class T>
KernelDecl number_kernel() {
  return {.op = "StringToNumber", .types = {{"out_type", {dtype_of<T>}}}, .run = to_number<T>};
}
const KernelRegistration kFloat(number_kernel<float>());
const KernelRegistration kDouble(number_kernel<double>());
const KernelRegistration kInt32(number_kernel<std::int32_t>());
const KernelRegistration kInt64(number_kernel<std::int64_t>());
const KernelRegistration kUint32(number_kernel<std::uint32_t>());
const KernelRegistration kUint64(number_kernel<std::uint64_t>());

}  // namespace
}  // namespace tandem::cpu
