#include "tandem/io/zip.h"

#include <algorithm>
#include <cstdint>

#include <zlib.h>

#include "tandem/core/error.h"

namespace tandem::io {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::uint32_t kIn64 = 0xffffffff;  // the number stands in the zip64 field
constexpr std::uint16_t kDate = 1 << 5 | 1;  // 1 January 1980: the same bytes for the same content

void put(std::string& out, std::uint64_t value, int bytes) {
  for (; bytes > 0; --bytes, value >>= 8) out += static_cast<char>(value & 0xff);
}

std::uint32_t crc_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

bool needs_64(std::uint64_t value) { return value >= kIn64; }

struct Written {
  std::uint32_t crc;
  std::uint64_t offset;
};

void put_central(std::string& out, const ZipEntry& entry, const Written& written) {
  const std::uint64_t size = entry.content.size();
  std::string extra;
  if (needs_64(size)) {
    put(extra, size, 8);
    put(extra, size, 8);
  }
  if (needs_64(written.offset)) put(extra, written.offset, 8);
  if (!extra.empty()) {
    std::string field;
    put(field, 1, 2);
    put(field, extra.size(), 2);
    extra = field + extra;
  }
  put(out, kCentralHeader, 4);
  put(out, 45, 2);
  put(out, 45, 2);
  put(out, 0x800, 2);  // names are UTF-8
  put(out, 0, 4);      // stored, no time
  put(out, kDate, 2);
  put(out, written.crc, 4);
  put(out, std::min<std::uint64_t>(size, kIn64), 4);
  put(out, std::min<std::uint64_t>(size, kIn64), 4);
  put(out, entry.name.size(), 2);
  put(out, extra.size(), 2);
  put(out, 0, 10);  // comment, disk, attributes
  put(out, std::min<std::uint64_t>(written.offset, kIn64), 4);
  out += entry.name;
  out += extra;
}

}  // namespace

std::string make_zip(const std::vector<ZipEntry>& entries) {
  std::string out;
  std::vector<Written> written;
  for (const ZipEntry& entry : entries) {
    const std::uint64_t size = entry.content.size();
    written.push_back({crc_of(entry.content), out.size()});
    put(out, kLocalHeader, 4);
    put(out, needs_64(size) ? 45 : 20, 2);
    put(out, 0x800, 2);
    put(out, 0, 4);
    put(out, kDate, 2);
    put(out, written.back().crc, 4);
    put(out, std::min<std::uint64_t>(size, kIn64), 4);
    put(out, std::min<std::uint64_t>(size, kIn64), 4);
    put(out, entry.name.size(), 2);
    put(out, needs_64(size) ? 20 : 0, 2);
    out += entry.name;
    if (needs_64(size)) {
      put(out, 1, 2);
      put(out, 16, 2);
      put(out, size, 8);
      put(out, size, 8);
    }
    out += entry.content;
  }
  const std::uint64_t directory = out.size();
  for (std::size_t i = 0; i < entries.size(); ++i) put_central(out, entries[i], written[i]);
  const std::uint64_t end = out.size();
  if (needs_64(end) || entries.size() >= 0xffff) {
    put(out, kEnd64, 4);
    put(out, 44, 8);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, 0, 8);
    put(out, entries.size(), 8);
    put(out, entries.size(), 8);
    put(out, end - directory, 8);
    put(out, directory, 8);
    put(out, kLocator64, 4);
    put(out, 0, 4);
    put(out, end, 8);
    put(out, 1, 4);
  }
  const std::uint64_t count = std::min<std::uint64_t>(entries.size(), 0xffff);
  put(out, kEnd, 4);
  put(out, 0, 4);
  put(out, count, 2);
  put(out, count, 2);
  put(out, std::min<std::uint64_t>(end - directory, kIn64), 4);
  put(out, std::min<std::uint64_t>(directory, kIn64), 4);
  put(out, 0, 2);
  return out;
}

namespace {

class Reader {
 public:
  Reader(std::string_view bytes, std::size_t max_bytes, const std::string& name)
      : bytes_(bytes), left_(max_bytes), name_(name) {}

  std::vector<ZipEntry> read() {
    const std::size_t end = find_end();
    std::uint64_t count = number(end + 10, 2), at = number(end + 16, 4);
    if (end >= 20 && number(end - 20, 4) == kLocator64) {
      const std::uint64_t end64 = number(end - 12, 8);
      if (number(end64, 4) != kEnd64) damaged("its end is not where it should be");
      count = number(end64 + 32, 8);
      at = number(end64 + 48, 8);
    }
    std::vector<ZipEntry> entries;
    for (std::uint64_t i = 0; i < count; ++i) entries.push_back(read_entry(at));
    return entries;
  }

 private:
  [[noreturn]] void damaged(const std::string& why) const {
    throw DataLossError(cat(name_, " is damaged: ", why, "."));
  }
  std::string_view part(std::uint64_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) damaged("it is cut off");
    return bytes_.substr(at, size);
  }
  std::uint64_t number(std::uint64_t at, std::size_t size) const {
    const std::string_view field = part(at, size);
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(field[i]);
    return value;
  }
  std::size_t find_end() const {
    constexpr std::size_t kEndSize = 22, kLongestComment = 65535;
    if (bytes_.starts_with("\x93NUMPY")) {
      throw InvalidArgumentError(
          cat(name_, " is one array (.npy), no archive of arrays (.npz): read it with read_npy."));
    }
    if (!bytes_.starts_with(std::string_view("PK").substr(0, bytes_.size())))
      throw InvalidArgumentError(cat(name_, " is no zip archive."));
    if (bytes_.size() < kEndSize) damaged("it is too short for a zip archive");
    const std::size_t last = bytes_.size() - kEndSize;
    const std::size_t first = last > kLongestComment ? last - kLongestComment : 0;
    for (std::size_t at = last + 1; at-- > first;) {
      if (number(at, 4) == kEnd) return at;
    }
    damaged("it has no end of a zip archive");
  }

  ZipEntry read_entry(std::uint64_t& at) {
    if (number(at, 4) != kCentralHeader) damaged("its list of files is damaged");
    const std::uint64_t flags = number(at + 8, 2), method = number(at + 10, 2),
                        crc = number(at + 16, 4);
    std::uint64_t packed = number(at + 20, 4), size = number(at + 24, 4),
                  offset = number(at + 42, 4);
    const std::uint64_t name_size = number(at + 28, 2), extra_size = number(at + 30, 2),
                        comment_size = number(at + 32, 2);
    ZipEntry entry;
    entry.name = part(at + 46, name_size);
    read_64(at + 46 + name_size, extra_size, size, packed, offset);
    at += 46 + name_size + extra_size + comment_size;
    if (flags & 1) throw UnimplementedError(cat(name_, ": '", entry.name, "' is encrypted."));
    if (number(offset, 4) != kLocalHeader) damaged(cat("'", entry.name, "' is not in its place"));
    const std::uint64_t begin = offset + 30 + number(offset + 26, 2) + number(offset + 28, 2);
    const std::string_view stored = part(begin, packed);
    if (size > left_) {
      throw ResourceExhaustedError(cat(name_, ": '", entry.name, "' would unpack to ", size,
                                       " bytes, which is more than is allowed."));
    }
    left_ -= size;
    if (method == 0) {
      entry.content = stored;
    } else if (method == 8) {
      entry.content = inflate_all(stored, size, entry.name);
    } else {
      throw UnimplementedError(cat(name_, ": '", entry.name, "' is compressed by method ", method,
                                   "; only stored and deflated files are read."));
    }
    if (entry.content.size() != size || crc_of(entry.content) != crc)
      damaged(cat("'", entry.name, "' does not have its checksum"));
    return entry;
  }

  // Numbers that do not fit 32 bits stand in the extra field 1, in this order.
  void read_64(std::uint64_t at, std::uint64_t size, std::uint64_t& content, std::uint64_t& packed,
               std::uint64_t& offset) const {
    const std::uint64_t end = at + size;
    while (at + 4 <= end) {
      const std::uint64_t id = number(at, 2), field_end = at + 4 + number(at + 2, 2);
      std::uint64_t next = at + 4;
      for (std::uint64_t* value : {&content, &packed, &offset}) {
        if (id != 1 || *value != kIn64 || next + 8 > field_end) continue;
        *value = number(next, 8);
        next += 8;
      }
      at = field_end;
    }
  }

  // Grows with what really comes, whatever size is announced.
  std::string inflate_all(std::string_view packed, std::uint64_t size,
                          const std::string& entry) const {
    z_stream stream = {};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
      throw ResourceExhaustedError(cat(name_, ": no memory to unpack '", entry, "'."));
    std::string out;
    int status = Z_OK;
    while (status == Z_OK) {
      if (stream.avail_in == 0) {
        const std::size_t more = std::min<std::size_t>(packed.size(), 1u << 30);
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
        stream.avail_in = static_cast<uInt>(more);
        packed.remove_prefix(more);
      }
      const std::size_t before = out.size();
      constexpr std::size_t kPiece = 1 << 16;
      out.resize(before + kPiece);
      stream.next_out = reinterpret_cast<Bytef*>(out.data() + before);
      stream.avail_out = kPiece;
      status = inflate(&stream, Z_NO_FLUSH);
      out.resize(before + kPiece - stream.avail_out);
      if (out.size() > size) break;
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END) damaged(cat("'", entry, "' can't be unpacked"));
    return out;
  }

  std::string_view bytes_;
  std::size_t left_;
  const std::string& name_;
};

}  // namespace

std::vector<ZipEntry> read_zip(std::string_view bytes, std::size_t max_bytes,
                               const std::string& name) {
  return Reader(bytes, max_bytes, name).read();
}

}  // namespace tandem::io
