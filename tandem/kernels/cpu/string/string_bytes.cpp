// Strings as bytes: base64, and numbers that lie in them.

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/string/map_strings.h"

namespace tandem::cpu {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encoded(const std::string& s, bool pad) {
  std::string text;
  text.reserve((s.size() + 2) / 3 * 4);
  const auto byte = [&](std::size_t i) {
    return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u;
  };
  for (std::size_t i = 0; i < s.size(); i += 3) {
    const unsigned group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    const std::size_t digits = std::min<std::size_t>(s.size() - i, 3) + 1;
    for (std::size_t k = 0; k < 4; ++k) {
      if (k < digits) {
        text += kDigits[group >> (18 - 6 * k) & 63];
      } else if (pad) {
        text += '=';
      }
    }
  }
  return text;
}

std::string decoded(std::string_view s) {
  static constexpr auto kValues = [] {
    std::array<signed char, 256> values{};
    for (auto& value : values) value = -1;
    for (std::size_t i = 0; i < kDigits.size(); ++i) {
      values[static_cast<unsigned char>(kDigits[i])] = static_cast<signed char>(i);
    }
    return values;
  }();
  if (s.size() % 4 == 1) {
    throw InvalidArgumentError("Base64 string length cannot be 1 modulo 4.");
  }
  if (!s.empty() && s.size() % 4 == 0) {  // padded, perhaps
    for (int i = 0; i < 2 && s.back() == '='; ++i) s.remove_suffix(1);
  }
  std::string bytes;
  bytes.reserve(s.size() * 3 / 4);
  unsigned group = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const int value = kValues[static_cast<unsigned char>(s[i])];
    if (value < 0) throw InvalidArgumentError("Invalid character found in base64.");
    group = group << 6 | static_cast<unsigned>(value);
    const std::size_t have = i % 4;
    if (have > 0) bytes += static_cast<char>(group >> (6 - 2 * have) & 0xFF);
  }
  return bytes;
}

void encode(KernelContext& c) {
  const bool pad = c.attr<bool>("pad");
  map_strings<std::string>(c, 100, [pad](const std::string& s) { return encoded(s, pad); });
}

void decode(KernelContext& c) {
  map_strings<std::string>(c, 100, [](const std::string& s) { return decoded(s); });
}

// ---- Numbers ----

// Turns the order of the bytes of every number.
void swap_bytes(char* data, std::size_t count, std::size_t size) {
  for (std::size_t i = 0; i < count; ++i) std::reverse(data + i * size, data + (i + 1) * size);
}

// The strings' first `width` bytes, filled with zeros, as numbers along one more axis.
void bytes_as_numbers(KernelContext& c, std::size_t width) {
  const Array& in = c.input(0);
  const DType dtype = c.output_dtype(0);
  const std::size_t size = dtype_size(dtype);
  Shape shape = in.shape();
  shape.add_dim(static_cast<std::int64_t>(width / size));
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  char* to = static_cast<char*>(out.raw_data());
  for (const std::string& s : in.values<std::string>()) {
    const std::size_t have = std::min(s.size(), width);
    std::memcpy(to, s.data(), have);
    std::memset(to + have, 0, width - have);
    if (dtype == DType::kBool) {  // any other byte than 0 and 1 would be no bool
      for (std::size_t i = 0; i < width; ++i) to[i] = to[i] != 0 ? 1 : 0;
    }
    to += width;
  }
  const bool parts = is_complex(dtype);
  if (!c.attr<bool>("little_endian")) {
    const std::size_t part = parts ? size / 2 : size;
    swap_bytes(static_cast<char*>(out.raw_data()), out.num_bytes() / part, part);
  }
}

void decode_raw(KernelContext& c) {
  const auto strings = c.input(0).values<std::string>();
  const std::size_t width = strings.empty() ? 0 : strings[0].size();
  const std::size_t size = dtype_size(c.output_dtype(0));
  for (std::size_t i = 1; i < strings.size(); ++i) {
    if (strings[i].size() != width) {
      throw InvalidArgumentError(
          cat("DecodeRaw requires input strings to all be the same size, but element ", i,
              " has size ", strings[i].size(), " instead of ", width));
    }
  }
  if (width % size != 0) {
    throw InvalidArgumentError(cat("Input to DecodeRaw has length ", width,
                                   " that is not a multiple of ", size, ", the size of ",
                                   c.output_dtype(0)));
  }
  bytes_as_numbers(c, width);
}

void decode_padded_raw(KernelContext& c) {
  const std::int64_t width = scalar_int_input(c, 1, "fixed_length");
  const auto size = static_cast<std::int64_t>(dtype_size(c.output_dtype(0)));
  if (width <= 0) {
    throw InvalidArgumentError(cat("fixed_length (", width, ") must be greater than zero."));
  }
  if (width % size != 0) {
    throw InvalidArgumentError(
        cat("fixed_length (", width, ") must be a multiple of the size of out_type (", size, ")"));
  }
  bytes_as_numbers(c, static_cast<std::size_t>(width));
}

const KernelRegistration kEncode{{.op = "EncodeBase64", .run = encode}};
const KernelRegistration kDecode{{.op = "DecodeBase64", .run = decode}};
const KernelRegistration kDecodeRaw{{.op = "DecodeRaw", .run = decode_raw}};
const KernelRegistration kDecodePaddedRaw{{.op = "DecodePaddedRaw", .run = decode_padded_raw}};

}  // namespace
}  // namespace tandem::cpu
