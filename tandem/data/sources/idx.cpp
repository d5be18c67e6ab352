#include "tandem/data/idx.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/gzip.h"

namespace tandem::data {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 30;

[[noreturn]] void damaged(const std::string& path, std::size_t offset, std::string_view why) {
  throw DataLossError(cat("IDX file ", path, ", offset ", offset, ": ", why, "."));
}

DType dtype_of_code(unsigned char code) {
  switch (code) {
    case 0x08: return DType::kUint8;
    case 0x09: return DType::kInt8;
    case 0x0B: return DType::kInt16;
    case 0x0C: return DType::kInt32;
    case 0x0D: return DType::kFloat;
    case 0x0E: return DType::kDouble;
    default: return DType::kInvalid;
  }
}

}  // namespace

Tensor read_idx(const String& path) {
  std::string bytes = fs::read_file(path);
  if (bytes.starts_with("\x1f\x8b")) bytes = fs::gunzip(bytes, kMaxBytes, path);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() < 4 || byte(0) != 0 || byte(1) != 0) {
    damaged(path, 0, "it does not begin with the magic number of an IDX file");
  }
  const DType dtype = dtype_of_code(byte(2));
  if (dtype == DType::kInvalid) {
    damaged(path, 2,
            cat("0x", "0123456789abcdef"[byte(2) >> 4], "0123456789abcdef"[byte(2) & 15],
                " is no type of an IDX file"));
  }
  const std::size_t rank = byte(3);
  const std::size_t header = 4 + 4 * rank;
  if (rank > Shape::kMaxRank || bytes.size() < header) damaged(path, 4, "its sizes are cut off");
  std::vector<std::int64_t> dims;
  for (std::size_t at = 4; at < header; at += 4) {
    dims.push_back(std::int64_t{byte(at)} << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 |
                   byte(at + 3));
  }
  // Announced sizes are believed only as far as there are bytes.
  const std::size_t size = dtype_size(dtype), given = (bytes.size() - header) / size;
  std::size_t count = 1;
  for (const std::int64_t dim : dims) {
    const auto n = static_cast<std::size_t>(dim);
    if (n != 0 && count > given / n) {
      count = given + 1;
      break;
    }
    count *= n;
  }
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) count = 0;
  if (count != given || bytes.size() - header != given * size) {
    damaged(path, header,
            cat(bytes.size() - header, " bytes of values follow, which is not what the sizes ",
                PartialShape(dims), " of ", dtype, " announce"));
  }
  Array array(dtype, Shape(std::span<const std::int64_t>(dims)));
  auto* to = static_cast<char*>(array.raw_data());
  if (count > 0) std::memcpy(to, bytes.data() + header, count * size);
  // Big-endian.
  for (std::size_t i = 0; size > 1 && i < count; ++i)
    std::reverse(to + i * size, to + (i + 1) * size);
  return Tensor(std::move(array));
}

Dataset from_idx(const std::vector<std::string>& paths) {
  std::vector<Tensor> components;
  for (const std::string& path : paths) components.push_back(read_idx(path));
  return from_tensor_slices(std::move(components));
}

}  // namespace tandem::data
