#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tandem/core/export.h"

namespace tandem::fs {

/// How a whole file is compressed, around whatever format its content has.
enum class Compression { kNone, kGzip, kZlib };

/// The compression of a name that TensorFlow uses: "", "GZIP" or "ZLIB"; others throw
/// InvalidArgumentError.
TANDEM_EXPORT Compression compression_of(std::string_view name);

/// The content of a file from its beginning to its end, decompressed, through one buffer: reading
/// costs a system call every `buffer_bytes`. Files may change or vanish while they are read, so
/// they are not mapped into memory. Used by one thread at a time.
class TANDEM_EXPORT ByteStream {
 public:
  static constexpr std::size_t kBufferBytes = std::size_t{256} << 10;

  explicit ByteStream(std::string path, Compression compression = Compression::kNone,
                      std::size_t buffer_bytes = kBufferBytes);
  /// A stream of bytes in memory, which must outlive the stream; `name` is what errors call them.
  ByteStream(std::string_view bytes, std::string name, Compression compression);
  ~ByteStream();
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) noexcept;

  const std::string& path() const;
  /// The next `count` bytes, fewer only at the end; valid until the next call. The buffer grows
  /// with what is really there, never with what is asked for. Damaged compressed data throws
  /// DataLossError, once, after all bytes before the damage: then the content ends.
  std::string_view peek(std::size_t count);
  /// What the buffer holds, at least one byte but at the end.
  std::string_view peek_some();
  /// Passes over bytes that a peek has shown; what it showed stays valid.
  void consume(std::size_t count);
  /// Skips what the buffer holds, and releases its memory.
  void drop();
  /// Passes over `count` bytes; returns how many there were.
  std::uint64_t skip(std::uint64_t count);
  /// Where the next byte lies in the decompressed content.
  std::uint64_t offset() const;
  /// Goes to a place in the decompressed content; compressed files are read again from the start.
  void seek(std::uint64_t offset);
  /// No more than this many bytes can follow: what is left of a plain file, and what so many
  /// compressed bytes could hold at most.
  std::uint64_t most_left() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::fs
