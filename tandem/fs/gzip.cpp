#include "tandem/fs/gzip.h"

#include <algorithm>
#include <climits>
#include <memory>

#include <zlib.h>

#include "tandem/core/error.h"

namespace tandem::fs {
namespace {

constexpr int kGzipFormat = 15 + 16;
constexpr int kGzipOrZlibFormat = 15 + 32;
constexpr std::size_t kChunk = std::size_t{64} << 10;

Bytef* bytes_of(const char* text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text)); }

// zlib counts in 32 bits: large data goes in by pieces.
void feed(z_stream& stream, std::string_view& rest) {
  if (stream.avail_in != 0) return;
  const std::size_t piece = std::min<std::size_t>(rest.size(), UINT_MAX);
  stream.next_in = bytes_of(rest.data());
  stream.avail_in = static_cast<uInt>(piece);
  rest.remove_prefix(piece);
}

}  // namespace

std::string gunzip(std::string_view bytes, std::size_t max_bytes, const std::string& name) {
  const auto damaged = [&](const char* why) {
    throw DataLossError(
        cat(name, ": ", why, ". It is not the gzip or zlib data that it should be."));
  };
  z_stream stream{};
  if (inflateInit2(&stream, kGzipOrZlibFormat) != Z_OK) {
    throw ResourceExhaustedError(cat(name, ": no memory to decompress it."));
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::string content;
  std::string_view rest = bytes;
  for (;;) {
    feed(stream, rest);
    const std::size_t have = content.size();
    content.resize(have + kChunk);
    stream.next_out = bytes_of(content.data() + have);
    stream.avail_out = kChunk;
    const int status = inflate(&stream, Z_NO_FLUSH);
    content.resize(have + kChunk - stream.avail_out);
    if (content.size() > max_bytes) {
      throw ResourceExhaustedError(
          cat(name, ": its content is larger than the ", max_bytes, " bytes allowed."));
    }
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0 && rest.empty()) return content;
      if (inflateReset(&stream) != Z_OK) damaged("the data is damaged");  // the next member
    } else if (status == Z_BUF_ERROR ||
               (status == Z_OK && stream.avail_in == 0 && rest.empty() && stream.avail_out != 0)) {
      damaged("the data is cut off");
    } else if (status != Z_OK) {
      damaged(stream.msg ? stream.msg : "the data is damaged");
    }
  }
}

std::string gzip(std::string_view bytes, int level) {
  if (level < 1 || level > 9) {
    throw InvalidArgumentError(cat("gzip: the level must be from 1 to 9, got ", level, "."));
  }
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipFormat, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw ResourceExhaustedError("No memory to compress with gzip.");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  std::string content;
  std::string_view rest = bytes;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    feed(stream, rest);
    const std::size_t have = content.size();
    content.resize(have + kChunk);
    stream.next_out = bytes_of(content.data() + have);
    stream.avail_out = kChunk;
    status = deflate(&stream, rest.empty() ? Z_FINISH : Z_NO_FLUSH);
    content.resize(have + kChunk - stream.avail_out);
  }
  return content;
}

}  // namespace tandem::fs
