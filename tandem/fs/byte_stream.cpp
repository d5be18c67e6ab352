#include "tandem/fs/byte_stream.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <zlib.h>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"

namespace tandem::fs {
namespace {

// Deflate makes at most so many bytes of one.
constexpr std::uint64_t kMaxExpansion = 1032;

// Where the stored bytes come from.
class Source {
 public:
  Source(const std::string& path, bool) : file_(file_system_of(path).open(path)) {
    const std::optional<std::uint64_t> known = file_->known_size();
    size_ = known ? *known : file_system_of(path).stat(path).size;
  }
  explicit Source(std::string_view bytes) : bytes_(bytes), size_(bytes.size()) {}

  std::size_t read(std::uint64_t offset, std::span<char> out) const {
    if (file_) return file_->read(offset, out);
    if (offset >= bytes_.size()) return 0;
    const std::size_t count = std::min<std::size_t>(out.size(), bytes_.size() - offset);
    std::memcpy(out.data(), bytes_.data() + offset, count);
    return count;
  }
  std::uint64_t size() const { return size_; }
  // For where nothing can be read. Some systems report sizes that their files never have.
  void check_end(const std::string& path, std::uint64_t at) const {
    if (!file_ || at >= size_) return;
    const std::uint64_t now = file_system_of(path).stat(path).size;
    if (now >= size_) return;
    throw DataLossError(cat(path, ": the file ends at byte ", at, " of ", size_,
                            ", which it had when it was opened. Was it changed meanwhile?"));
  }

 private:
  std::unique_ptr<ReadableFile> file_;
  std::string_view bytes_;
  std::uint64_t size_ = 0;
};

// Inflates what a source holds: gzip (of several members) or zlib data.
class Inflater {
 public:
  Inflater(const Source& source, const std::string& path, Compression compression)
      : source_(source),
        path_(path),
        stored_(std::size_t{64} << 10),
        gzip_(compression == Compression::kGzip) {
    const int format = gzip_ ? 15 + 16 : 15;
    if (inflateInit2(&stream_, format) != Z_OK) {
      throw ResourceExhaustedError(cat(path, ": no memory to decompress it."));
    }
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // What lies before damage is given first.
  std::size_t read(std::span<char> out) {
    if (damage_) std::rethrow_exception(std::exchange(damage_, nullptr));
    std::size_t got = 0;
    try {
      inflate_into(out, got);
    } catch (...) {
      if (got == 0) throw;
      damage_ = std::current_exception();
    }
    return got;
  }
  std::uint64_t most_left() const {
    const std::uint64_t stored =
        stream_.avail_in + (source_.size() > at_ ? source_.size() - at_ : 0);
    // What the window of the format still holds back counts too.
    return stored > UINT64_MAX / kMaxExpansion / 2 ? UINT64_MAX / 2 : (stored + 64) * kMaxExpansion;
  }

 private:
  void inflate_into(std::span<char> out, std::size_t& got) {
    while (got < out.size() && !ended_) {
      if (stream_.avail_in == 0) {
        const std::size_t count = source_.read(at_, stored_);
        if (count == 0) {
          if (!within_ && at_ > 0) {
            ended_ = true;
            break;
          }
          fail(end_is_there() ? "the compressed data is damaged"
                              : "the compressed data is cut off");
        }
        at_ += count;
        stream_.next_in = reinterpret_cast<Bytef*>(stored_.data());
        stream_.avail_in = static_cast<uInt>(count);
      }
      within_ = true;
      const std::size_t piece = std::min(out.size() - got, std::size_t{1} << 30);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + got);
      stream_.avail_out = static_cast<uInt>(piece);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      got += piece - stream_.avail_out;
      if (status == Z_STREAM_END) {
        within_ = false;
        ++members_;
        if (inflateReset(&stream_) != Z_OK) fail("the compressed data is damaged");
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail(stream_.msg ? stream_.msg : "the compressed data is damaged");
      }
    }
  }

  [[noreturn]] void fail(const char* why) const {
    const bool nothing = members_ == 0 && stream_.total_out == 0;
    throw DataLossError(cat(path_, ": ", why, " (inflate, at byte ", at_ - stream_.avail_in,
                            " of the compressed file).",
                            nothing ? " Is its compression another one?" : ""));
  }

  // Flipped bits may let inflate run over the end of the data. A gzip file whose end is there has
  // the content's size in its last bytes; in one that was cut off they are anything.
  bool end_is_there() const {
    std::uint8_t last[4];
    if (!gzip_ || source_.size() < sizeof(last) ||
        source_.read(source_.size() - sizeof(last), {reinterpret_cast<char*>(last), sizeof(last)}) <
            sizeof(last)) {
      return false;
    }
    const std::uint64_t size = last[0] | std::uint64_t{last[1]} << 8 |
                               std::uint64_t{last[2]} << 16 | std::uint64_t{last[3]} << 24;
    const std::uint64_t made = stream_.total_out & UINT32_MAX;
    // What is made of flipped bits may be much shorter, or longer. Of any four bytes it is rarely
    // the size: a wide range for little data, a narrow one for much.
    const std::uint64_t spread = std::clamp<std::uint64_t>((64 << 20) / (made + 1), 2, 32);
    return size >= made / spread && size / spread <= made + 1024;
  }

  const Source& source_;
  const std::string& path_;
  z_stream stream_{};
  std::vector<char> stored_;
  std::uint64_t at_ = 0;
  const bool gzip_;
  std::exception_ptr damage_;  // behind what was given
  std::uint64_t members_ = 0;  // that have ended
  bool within_ = false;
  bool ended_ = false;
};

}  // namespace

struct ByteStream::State {
  State(std::string name, Source from, Compression how, std::size_t buffer)
      : path(std::move(name)),
        source(std::move(from)),
        compression(how),
        buffer_bytes(std::max<std::size_t>(buffer, 64)) {
    rewind();
  }

  void rewind() {
    if (compression != Compression::kNone) {
      inflater.reset();
      inflater = std::make_unique<Inflater>(source, path, compression);
    }
    read_to = 0;
    begin = end = 0;
    broken = false;
  }

  // Adds bytes behind `end`; false at the end of the content.
  bool fill() {
    if (broken) return false;
    if (begin == end) begin = end = 0;
    if (end == buffer.size()) {
      if (begin > 0) {
        std::memmove(buffer.data(), buffer.data() + begin, end - begin);
        end -= begin;
        begin = 0;
      } else {
        buffer.resize(std::max(buffer_bytes, buffer.size() * 2));
      }
    }
    const std::span<char> room = std::span(buffer).subspan(end);
    broken = true;  // unless reading succeeds: an error is reported once
    const std::size_t got = inflater ? inflater->read(room) : source.read(read_to, room);
    if (got == 0 && !inflater) source.check_end(path, read_to);
    broken = false;
    read_to += got;
    end += got;
    return got > 0;
  }

  std::string path;
  Source source;
  Compression compression;
  std::size_t buffer_bytes;
  std::unique_ptr<Inflater> inflater;
  std::vector<char> buffer;
  std::size_t begin = 0, end = 0;  // of what the buffer holds
  std::uint64_t read_to = 0;       // where that ends in the content
  bool broken = false;             // there is nothing beyond
};

Compression compression_of(std::string_view name) {
  if (name.empty()) return Compression::kNone;
  if (name == "GZIP") return Compression::kGzip;
  if (name == "ZLIB") return Compression::kZlib;
  throw InvalidArgumentError(
      cat("Unknown compression_type '", name, "'. Known are '' (none), 'GZIP' and 'ZLIB'."));
}

ByteStream::ByteStream(std::string path, Compression compression, std::size_t buffer_bytes) {
  Source source(path, true);
  state_ = std::make_unique<State>(std::move(path), std::move(source), compression, buffer_bytes);
}
ByteStream::ByteStream(std::string_view bytes, std::string name, Compression compression)
    : state_(std::make_unique<State>(std::move(name), Source(bytes), compression, kBufferBytes)) {}
ByteStream::~ByteStream() = default;
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&&) noexcept = default;

const std::string& ByteStream::path() const { return state_->path; }

std::string_view ByteStream::peek(std::size_t count) {
  State& s = *state_;
  while (s.end - s.begin < count && s.fill()) {
  }
  return {s.buffer.data() + s.begin, std::min(count, s.end - s.begin)};
}

std::string_view ByteStream::peek_some() {
  State& s = *state_;
  if (s.begin == s.end) s.fill();
  return {s.buffer.data() + s.begin, s.end - s.begin};
}

void ByteStream::consume(std::size_t count) { state_->begin += count; }

void ByteStream::drop() {
  State& s = *state_;
  s.begin = s.end = 0;
  std::vector<char>().swap(s.buffer);
}

std::uint64_t ByteStream::skip(std::uint64_t count) {
  State& s = *state_;
  std::uint64_t left = count;
  for (;;) {
    const std::uint64_t here = std::min<std::uint64_t>(left, s.end - s.begin);
    s.begin += static_cast<std::size_t>(here);
    left -= here;
    if (left == 0) return count;
    if (!s.inflater) {  // no need to read what lies between
      const std::uint64_t there = s.source.size() > s.read_to ? s.source.size() - s.read_to : 0;
      const std::uint64_t step = std::min(left, there);
      s.read_to += step;
      return count - (left - step);
    }
    if (!s.fill()) return count - left;
  }
}

std::uint64_t ByteStream::offset() const { return state_->read_to - (state_->end - state_->begin); }

void ByteStream::seek(std::uint64_t to) {
  State& s = *state_;
  if (to < offset()) s.rewind();
  skip(to - offset());
}

std::uint64_t ByteStream::most_left() const {
  const State& s = *state_;
  const std::uint64_t held = s.end - s.begin;
  if (s.inflater) return held + s.inflater->most_left();
  return held + (s.source.size() > s.read_to ? s.source.size() - s.read_to : 0);
}

}  // namespace tandem::fs
