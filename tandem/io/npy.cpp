#include "tandem/io/npy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/internal/npy_header.h"

namespace tandem::io {
namespace {

// Copies elements of `size` bytes that lie in Fortran order (first axis fastest) into C order.
void from_fortran(const char* in, const Shape& shape, std::size_t size, char* out) {
  const int rank = shape.rank();
  const auto axes = static_cast<std::size_t>(rank);
  std::vector<std::int64_t> index(axes, 0), stride(axes, 1);
  for (std::size_t a = 1; a < axes; ++a) stride[a] = stride[a - 1] * shape[static_cast<int>(a) - 1];
  std::int64_t from = 0;
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    std::memcpy(out, in + static_cast<std::size_t>(from) * size, size);
    out += size;
    for (std::size_t a = axes; a-- > 0;) {
      from += stride[a];
      if (++index[a] < shape[static_cast<int>(a)]) break;
      from -= stride[a] * index[a];
      index[a] = 0;
    }
  }
}

void swap_bytes(char* data, std::size_t bytes, std::size_t size) {
  for (std::size_t i = 0; i + size <= bytes; i += size) std::reverse(data + i, data + i + size);
}

void append_utf8(std::uint32_t c, std::string& text) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto add_rest = [&](unsigned shift) { add(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xc0 | c >> 6);
    add_rest(0);
  } else if (c < 0x10000) {
    add(0xe0 | c >> 12);
    add_rest(6);
    add_rest(0);
  } else {
    add(0xf0 | c >> 18);
    add_rest(12);
    add_rest(6);
    add_rest(0);
  }
}

std::uint32_t utf32_at(const char* data, bool big_endian) {
  std::uint32_t c = 0;
  for (unsigned i = 0; i < 4; ++i)
    c |= std::uint32_t{static_cast<unsigned char>(data[i])} << 8 * (big_endian ? 3 - i : i);
  return c;
}

std::string utf8_of(std::string_view utf32, bool big_endian, const std::string& name) {
  constexpr std::uint32_t kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff, kLast = 0x10ffff;
  std::string text;
  for (std::size_t at = 0; at < utf32.size(); at += 4) {
    const std::uint32_t c = utf32_at(utf32.data() + at, big_endian);
    if (c > kLast || (c >= kFirstSurrogate && c <= kLastSurrogate)) {
      throw DataLossError(
          cat(name, " is damaged: the number ", c, " in a string is no character of Unicode."));
    }
    append_utf8(c, text);
  }
  return text;
}

Array strings(const char* data, const NpyHeader& header, const std::string& name) {
  Array array(DType::kString, header.shape);
  auto* out = array.data<std::string>();
  for (std::int64_t i = 0; i < array.num_elements(); ++i) {
    std::string_view value(data, header.element_bytes);
    data += header.element_bytes;
    const std::size_t unit = header.utf32 ? 4 : 1;
    while (value.ends_with(std::string_view("\0\0\0\0", unit))) value.remove_suffix(unit);
    out[i] = header.utf32 ? utf8_of(value, header.big_endian, name) : std::string(value);
  }
  return array;
}

}  // namespace

Array decode_npy(std::string_view bytes, const String& name) {
  const NpyHeader header = read_npy_header(bytes, name);
  const auto count = static_cast<std::size_t>(header.shape.num_elements());
  const std::size_t left = bytes.size() - header.data_offset;
  if (header.element_bytes == 0 ? count != 0 : count > left / header.element_bytes) {
    throw DataLossError(cat(name, " is damaged: it announces ", header.dtype, header.shape,
                            " but holds ", left, " bytes of data."));
  }
  const char* data = bytes.data() + header.data_offset;
  std::string reordered;
  if (header.fortran_order && header.shape.rank() > 1) {
    reordered.resize(count * header.element_bytes);
    from_fortran(data, header.shape, header.element_bytes, reordered.data());
    data = reordered.data();
  }
  if (header.dtype == DType::kString) return strings(data, header, name);
  Array array(header.dtype, header.shape);
  auto* out = static_cast<char*>(array.raw_data());
  const std::size_t size = count * header.element_bytes;
  if (size > 0) std::memcpy(out, data, size);
  if (header.big_endian) {
    swap_bytes(out, size,
               is_complex(header.dtype) ? header.element_bytes / 2 : header.element_bytes);
  }
  if (header.dtype == DType::kBool) {  // other bytes than 0 and 1 are no bool
    for (std::size_t i = 0; i < size; ++i) out[i] = out[i] != 0;
  }
  return array;
}

Array read_npy(const String& path) { return decode_npy(fs::read_file(path), path); }

std::string encode_npy(const Array& array) {
  if (array.dtype() != DType::kString) {
    std::string bytes = make_npy_header(array.dtype(), dtype_size(array.dtype()), array.shape());
    bytes.append(static_cast<const char*>(array.raw_data()), array.num_bytes());
    return bytes;
  }
  const auto values = array.values<std::string>();
  std::size_t longest = 1;
  for (const std::string& value : values) {
    longest = std::max(longest, value.size());
    if (!value.empty() && value.back() == '\0') {
      throw InvalidArgumentError(
          "A string that ends in a NUL byte can't be saved in a NumPy file, which drops such "
          "bytes.");
    }
  }
  std::string bytes = make_npy_header(DType::kString, longest, array.shape());
  for (const std::string& value : values) {
    bytes += value;
    bytes.append(longest - value.size(), '\0');
  }
  return bytes;
}

void write_npy(const String& path, const Array& array) { fs::write_file(path, encode_npy(array)); }

void save_npy(const String& path, const Tensor& tensor) { write_npy(path, tensor.array()); }
Tensor load_npy(const String& path) { return read_npy(path); }

}  // namespace tandem::io
