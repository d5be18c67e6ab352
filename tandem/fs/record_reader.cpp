#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/record_file.h"

namespace tandem::fs {
namespace {

constexpr std::size_t kHeader = 12, kFooter = 4;
constexpr std::size_t kPiece = std::size_t{64} << 10;  // between looks at whether to go on

template <class T>
T little_endian(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

bool header_holds(const char* header) {
  return mask_crc32c(crc32c({header, 8})) == little_endian<std::uint32_t>(header + 8);
}

}  // namespace

RecordReader::RecordReader(std::string path, RecordReaderOptions options)
    : stream_(std::move(path), options.compression, options.buffer_bytes),
      options_(std::move(options)) {}

RecordReader::RecordReader(std::string_view bytes, std::string name, RecordReaderOptions options)
    : stream_(bytes, std::move(name), options.compression), options_(std::move(options)) {}

// Throws, or counts and returns true.
bool RecordReader::corrupt(std::uint64_t at, std::string_view why) {
  if (options_.skip_corrupt) {
    ++num_skipped_;
    return true;
  }
  throw DataLossError(cat(path(), ": corrupted record at ", at, ": ", why,
                          at == 0 ? " (Is this even a TFRecord file?)" : ""));
}

// Goes to the next bytes that can begin a record.
bool RecordReader::find_header() {
  for (;;) {
    const std::string_view bytes = stream_.peek_some();
    if (bytes.size() < kHeader && stream_.peek(kHeader).size() < kHeader) return false;
    const std::string_view some = stream_.peek_some();
    std::size_t at = 0;
    for (; at + kHeader <= some.size(); ++at) {
      if (at % kPiece == 0 && options_.check) options_.check();
      if (header_holds(some.data() + at) &&
          little_endian<std::uint64_t>(some.data() + at) <= stream_.most_left() - at) {
        stream_.consume(at);
        return true;
      }
    }
    stream_.consume(at);
  }
}

// What cannot be read is reported once: then the records end.
std::string_view RecordReader::peek(std::size_t count) {
  try {
    return stream_.peek(count);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    ended_ = true;
    throw;
  }
}

// The bytes of a record that was too large, a buffer's worth at a time.
void RecordReader::skip() {
  if (passing_ == 0) return;
  const std::uint64_t held = stream_.peek_some().size();
  if (held <= passing_) {  // the buffer may have grown for it
    stream_.drop();
    passing_ -= held;
  }
  while (passing_ > 0) {
    if (options_.check) options_.check();
    const std::uint64_t piece = std::min<std::uint64_t>(passing_, std::uint64_t{16} << 20);
    passing_ = stream_.skip(piece) < piece ? 0 : passing_ - piece;
  }
}

bool RecordReader::next(std::string_view& record) {
  stream_.consume(std::exchange(pending_, 0));
  skip();
  while (!ended_) {
    const std::uint64_t at = stream_.offset();
    const std::string_view header = peek(kHeader);
    if (header.empty()) {
      ended_ = true;
    } else if (header.size() < kHeader) {
      ended_ = true;
      corrupt(at, cat("truncated record, only ", header.size(), " bytes are left"));
    } else if (!header_holds(header.data())) {
      if (!options_.skip_corrupt) ended_ = true;
      corrupt(at, "the checksum of its length does not match");
      stream_.consume(1);
      ended_ = !find_header();
    } else {
      const auto length = little_endian<std::uint64_t>(header.data());
      if (length > stream_.most_left() - kHeader) {
        ended_ = true;
        corrupt(at, cat("truncated record, ", length, " bytes are announced but at most ",
                        stream_.most_left() - kHeader, " are left"));
        continue;
      }
      if (length > options_.max_record_bytes) {
        passing_ = kHeader + length + kFooter;
        throw ResourceExhaustedError(cat(path(), ": the record at ", at, " announces ", length,
                                         " bytes; max_record_bytes allows ",
                                         options_.max_record_bytes, "."));
      }
      const std::size_t whole = kHeader + static_cast<std::size_t>(length) + kFooter;
      std::string_view bytes;
      try {
        bytes = peek(whole);
      } catch (const std::bad_alloc&) {
        passing_ = whole;
        throw ResourceExhaustedError(
            cat(path(), ": no memory for the record at ", at, " of ", length, " bytes."));
      }
      if (bytes.size() < whole) {
        ended_ = true;
        corrupt(at, cat("truncated record, ", whole, " bytes are announced but ", bytes.size(),
                        " are left"));
        continue;
      }
      const std::string_view content = bytes.substr(kHeader, static_cast<std::size_t>(length));
      if (mask_crc32c(crc32c(content)) ==
          little_endian<std::uint32_t>(content.data() + content.size())) {
        pending_ = whole;
        record = content;
        return true;
      }
      stream_.consume(whole);
      corrupt(at, "the checksum of its data does not match");
    }
  }
  return false;
}

void RecordReader::seek(std::uint64_t offset) {
  stream_.consume(std::exchange(pending_, 0));
  passing_ = 0;
  stream_.seek(offset);
  ended_ = false;
}

}  // namespace tandem::fs
