#include "tandem/io/internal/bundle_format.h"

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/file_system.h"
#include "tandem/io/internal/table.h"
#include "tandem/io/internal/wire.h"

namespace tandem::io {

std::string index_path(const std::string& prefix) { return prefix + ".index"; }

std::string sharded_name(const std::string& prefix, int shard, int num_shards) {
  char text[64];
  std::snprintf(text, sizeof(text), "-%05d-of-%05d", shard, num_shards);
  return prefix + text;
}
std::string data_path(const std::string& prefix, int shard, int num_shards) {
  return sharded_name(prefix + ".data", shard, num_shards);
}

// ---- The index. ----

namespace {

constexpr int kVersion = 1;

}  // namespace

std::string encode_index(const BundleIndex& index) {
  proto::BundleHeaderProto header;
  header.num_shards = index.num_shards;
  if (index.big_endian) header.endianness = proto::BIG;
  header.version.make().producer = kVersion;
  std::map<std::string, std::string> table{{"", proto::WireWriter::write(header)}};
  for (const auto& [key, entry] : index.entries) table[key] = proto::WireWriter::write(entry);
  return write_table(table);
}

BundleIndex decode_index(std::string_view bytes, const std::string& path) {
  BundleIndex index;
  bool header_read = false;
  std::string last;
  try {
    read_table(bytes, [&](std::string_view key, std::string_view value) {
      if (!header_read) {
        if (!key.empty()) throw DataLossError("it has no header");
        proto::BundleHeaderProto header;
        proto::WireReader(value).read(header);
        if (header.num_shards < 1) throw DataLossError("it announces no shards");
        if (header.version->min_consumer > kVersion)
          throw UnimplementedError(cat("it asks for version ", header.version->min_consumer));
        index.num_shards = header.num_shards;
        index.big_endian = header.endianness == proto::BIG;
        header_read = true;
        return;
      }
      if (key <= last) throw DataLossError("its names are not in order");
      last = key;
      proto::WireReader(value).read(index.entries[last]);
    });
    if (!header_read) throw DataLossError("it has no header");
  } catch (const DataLossError& error) {
    throw DataLossError(cat("Unable to read file (", path,
                            "). It is damaged or no index of a checkpoint: ", error.what(), "."));
  } catch (const UnimplementedError& error) {
    throw UnimplementedError(cat("Unable to read file (", path, "): ", error.what(), "."));
  }
  return index;
}

namespace {

// People give the name of one of a checkpoint's files.
std::string advice(const std::string& prefix, const std::string& index) {
  for (const char* ending : {".index", ".data-"}) {
    const std::size_t at = prefix.rfind(ending);
    if (at == std::string::npos || prefix.find('/', at) != std::string::npos) continue;
    const std::string shorter = prefix.substr(0, at);
    if (fs::exists(index_path(shorter)))
      return cat(". A checkpoint is named by what its files' names begin with. Give '", shorter,
                 "'.");
  }
  return cat(": there is no file '", index, "'.");
}

}  // namespace

BundleIndex read_index(const std::string& prefix) {
  const std::string path = index_path(prefix);
  std::string bytes;
  try {
    bytes = fs::read_file(path);
  } catch (const NotFoundError&) {
    throw NotFoundError(
        cat("Unsuccessful TensorSliceReader constructor: Failed to find any matching files for ",
            prefix, advice(prefix, path)));
  }
  return decode_index(bytes, path);
}

// ---- Slices. ----

namespace {

// Strings and numbers whose bytes sort as they do.
void put_ordered(std::string& out, std::string_view text) {
  for (const char c : text) {
    out += c;
    if (c == '\0') out += '\xff';
    if (c == '\xff') out += '\0';
  }
  out += '\0';
  out += '\1';
}
// How many bytes it takes, then those.
void put_ordered_unsigned(std::string& out, std::uint64_t value) {
  std::string digits;
  for (; value != 0; value >>= 8) digits.insert(digits.begin(), static_cast<char>(value & 0xff));
  out += static_cast<char>(digits.size());
  out += digits;
}
// The length is how many bits are set first, of the complement for negative numbers. Of n bytes
// 7·n bits are left for a number with its sign.
void put_ordered_signed(std::string& out, std::int64_t value) {
  const std::uint64_t positive =
      value < 0 ? ~static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  unsigned size = 1;
  while (size < 10 && (positive >> (7 * size - 1)) != 0) ++size;
  std::string digits(size, value < 0 ? '\xff' : '\0');
  for (unsigned i = 0; i < size && i < 8; ++i)
    digits[size - 1 - i] = static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
  for (unsigned bit = 0; bit < size; ++bit)
    digits[bit / 8] = static_cast<char>(digits[bit / 8] ^ (0x80 >> (bit % 8)));
  out += digits;
}

}  // namespace

std::string slice_key(const std::string& name, const TensorSlice& slice) {
  std::string key;
  put_ordered_unsigned(key, 0);
  put_ordered(key, name);
  put_ordered_unsigned(key, slice.extents.size());
  for (const TensorSlice::Extent& extent : slice.extents) {
    put_ordered_signed(key, extent.length < 0 ? 0 : extent.start);
    put_ordered_signed(key, extent.length);
  }
  return key;
}
bool is_slice_key(std::string_view key) { return key.starts_with('\0'); }

TensorSlice decode_slice(const proto::TensorSliceProto& proto) {
  using Extent = proto::TensorSliceProto::Extent;
  TensorSlice slice;
  for (const Extent& extent : proto.extent) {
    const bool whole = extent.which_has_length == Extent::Case::kNone;
    slice.extents.push_back({extent.start, whole ? TensorSlice::kWhole : extent.length});
  }
  return slice;
}

proto::TensorSliceProto encode_slice(const TensorSlice& slice) {
  using Extent = proto::TensorSliceProto::Extent;
  proto::TensorSliceProto proto;
  for (const TensorSlice::Extent& extent : slice.extents) {
    Extent& written = proto.extent.emplace_back();
    if (extent.length < 0) continue;
    written.start = extent.start;
    written.length = extent.length;
    written.which_has_length = Extent::Case::kLength;
  }
  return proto;
}

TensorSlice resolve(const TensorSlice& slice, const Shape& shape) {
  if (slice.extents.size() != static_cast<std::size_t>(shape.rank())) {
    throw InvalidArgumentError(
        cat("Mismatching ranks: shape = ", shape, ", slice = ", slice.text()));
  }
  TensorSlice resolved = slice;
  for (int i = 0; i < shape.rank(); ++i) {
    TensorSlice::Extent& extent = resolved.extents[static_cast<std::size_t>(i)];
    if (extent.length == TensorSlice::kWhole) extent = {0, shape[i]};
    if (extent.start < 0 || extent.length < 0 || extent.start > shape[i] ||
        extent.length > shape[i] - extent.start) {
      throw InvalidArgumentError(cat("Extent in dimension ", i, " out of bounds: shape = ", shape,
                                     ", slice = ", slice.text()));
    }
  }
  return resolved;
}

// ---- Strings. ----

namespace {

void extend_with_length(std::uint32_t& crc, std::uint64_t length) {
  char bytes[8];
  std::memcpy(bytes, &length, sizeof(bytes));
  crc = fs::crc32c({bytes, length > 0xffffffffu ? 8u : 4u}, crc);
}

}  // namespace

void throw_checksum(std::uint32_t stored, std::uint32_t calculated) {
  throw DataLossError(cat("Checksum does not match: stored ", stored,
                          " vs. calculated on the restored bytes ", calculated));
}

EncodedStrings encode_strings_head(const Array& strings) {
  EncodedStrings encoded;
  for (const std::string& s : strings.values<std::string>()) {
    std::uint64_t length = s.size();
    extend_with_length(encoded.crc, length);
    for (; length >= 0x80; length >>= 7) encoded.head += static_cast<char>(length | 0x80);
    encoded.head += static_cast<char>(length);
  }
  const std::uint32_t check = fs::mask_crc32c(encoded.crc);
  char bytes[sizeof(check)];
  std::memcpy(bytes, &check, sizeof(check));
  encoded.head.append(bytes, sizeof(bytes));
  encoded.crc = fs::crc32c({bytes, sizeof(bytes)}, encoded.crc);
  for (const std::string& s : strings.values<std::string>())
    encoded.crc = fs::crc32c(s, encoded.crc);
  return encoded;
}

Array decode_strings(std::string_view bytes, const Shape& shape, std::uint32_t stored_crc) {
  const std::int64_t count = shape.num_elements();
  if (static_cast<std::uint64_t>(count) > bytes.size())
    throw DataLossError("It holds fewer strings than announced");
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(count));
  std::uint32_t crc = 0;
  std::size_t at = 0;
  for (std::uint64_t& length : lengths) {
    bool ended = false;
    for (int shift = 0; shift < 64 && at < bytes.size() && !ended; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      length |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      ended = byte < 0x80;
    }
    if (!ended) throw DataLossError("The length of a string is cut off or too long");
    extend_with_length(crc, length);
  }
  std::uint32_t check;
  if (bytes.size() - at < sizeof(check)) throw DataLossError("The strings are cut off");
  std::memcpy(&check, bytes.data() + at, sizeof(check));
  if (fs::unmask_crc32c(check) != crc) {
    throw DataLossError(cat("The length checksum does not match: expected ",
                            fs::unmask_crc32c(check), " but actual is ", crc));
  }
  crc = fs::crc32c(bytes.substr(at), crc);
  if (crc != stored_crc) throw_checksum(stored_crc, crc);
  at += sizeof(check);
  for (const std::uint64_t length : lengths) {
    if (length > bytes.size() - at) throw DataLossError("The strings are cut off");
    at += static_cast<std::size_t>(length);
  }
  if (at != bytes.size()) throw DataLossError("There are more bytes than the strings have");
  Array array(DType::kString, shape);
  auto* out = array.data<std::string>();
  for (std::size_t i = lengths.size(); i-- > 0;) {
    at -= static_cast<std::size_t>(lengths[i]);
    out[i] = bytes.substr(at, static_cast<std::size_t>(lengths[i]));
  }
  return array;
}

}  // namespace tandem::io
