#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/fs/byte_stream.h"

namespace tandem::fs {

struct RecordReaderOptions {
  Compression compression = Compression::kNone;
  std::size_t buffer_bytes = ByteStream::kBufferBytes;
  bool skip_corrupt = false;                         ///< pass over damaged records and count them
  std::uint64_t max_record_bytes = kMaxRecordBytes;  ///< larger ones are errors
  /// Called every so many bytes that are passed over; what it throws ends the search.
  std::function<void()> check = nullptr;

  static constexpr std::uint64_t kMaxRecordBytes = std::uint64_t{1} << 32;
  [[deprecated("use kMaxRecordBytes")]] static constexpr std::uint64_t kMostRecordBytes =
      kMaxRecordBytes;
};

/// Reads TFRecord files: records of any bytes, each with checksums of its length and its content,
/// which are always checked. Used by one thread at a time.
class TANDEM_EXPORT RecordReader {
 public:
  explicit RecordReader(std::string path, RecordReaderOptions options = {});
  /// A reader of a file's bytes in memory, which must outlive the reader; `name` is what errors
  /// call them.
  RecordReader(std::string_view bytes, std::string name, RecordReaderOptions options = {});

  /// The next record, valid until the next call; false at the end. A damaged or cut-off record is a
  /// DataLossError that names file and offset, and the next call goes on behind it where its length
  /// can be trusted, else ends. With `skip_corrupt` the reader passes over it; where a length is
  /// damaged it goes on with the next bytes that look like a record's beginning. A record larger
  /// than `max_record_bytes`, or than the memory left, is a ResourceExhaustedError, and the next
  /// call passes over it.
  bool next(std::string_view& record);

  /// Where the next record begins, in the decompressed content.
  std::uint64_t offset() const { return stream_.offset() + pending_ + passing_; }
  /// Where the record last given begins.
  std::uint64_t record_offset() const { return stream_.offset(); }
  /// Goes on at an offset that `offset` gave.
  void seek(std::uint64_t offset);
  /// Whether the file has no more records, also because an error ended it.
  bool ended() const { return ended_; }
  /// Gives no more records.
  void end() { ended_ = true; }
  /// Stretches of damaged bytes that were passed over.
  std::int64_t num_skipped() const { return num_skipped_; }
  const std::string& path() const { return stream_.path(); }

 private:
  std::string_view peek(std::size_t count);
  void skip();
  bool find_header();
  bool corrupt(std::uint64_t at, std::string_view why);

  ByteStream stream_;
  RecordReaderOptions options_;
  std::size_t pending_ = 0;    // bytes of the record last given
  std::uint64_t passing_ = 0;  // bytes of a record that was too large
  std::int64_t num_skipped_ = 0;
  bool ended_ = false;
};

struct RecordWriterOptions {
  Compression compression = Compression::kNone;
  int level = 6;         ///< of the compression, from 1 (fast) to 9 (small)
  bool durable = false;  ///< closing returns when the file would survive a crash of the machine
};

/// Writes TFRecord files, a buffer's worth at a time. Used by one thread at a time.
class TANDEM_EXPORT RecordWriter {
 public:
  /// Makes the file, or empties it.
  explicit RecordWriter(const std::string& path, RecordWriterOptions options = {});
  /// Closes, hiding errors.
  ~RecordWriter();
  /// A moved-from object throws FailedPreconditionError when it is written to or flushed.
  RecordWriter(RecordWriter&&) noexcept;
  RecordWriter& operator=(RecordWriter&&) noexcept;

  /// Throws FailedPreconditionError after `close`.
  void write(std::string_view record);
  /// Hands everything written so far to the system; readers of a plain file see it.
  void flush();
  /// Flushes, ends the compressed data and closes the file. Calling it again does nothing.
  void close();

 private:
  struct State;
  State& open_state() const;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::fs
