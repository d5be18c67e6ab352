#include <cstring>
#include <utility>
#include <vector>

#include <zlib.h>

#include "tandem/core/error.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/record_file.h"

namespace tandem::fs {
namespace {

constexpr std::size_t kBuffer = std::size_t{256} << 10;

// Compresses what it is given into a file.
class Deflater {
 public:
  Deflater(WritableFile& file, const RecordWriterOptions& options) : file_(file), out_(kBuffer) {
    const int format = options.compression == Compression::kGzip ? 15 + 16 : 15;
    if (deflateInit2(&stream_, options.level, Z_DEFLATED, format, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw ResourceExhaustedError("No memory to compress a record file.");
    }
  }
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void add(std::string_view bytes, int flush) {
    do {  // zlib counts in 32 bits
      const std::string_view piece = bytes.substr(0, std::size_t{1} << 30);
      bytes.remove_prefix(piece.size());
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream_.avail_in = static_cast<uInt>(piece.size());
      do {
        stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
        stream_.avail_out = static_cast<uInt>(out_.size());
        deflate(&stream_, bytes.empty() ? flush : Z_NO_FLUSH);
        file_.append({out_.data(), out_.size() - stream_.avail_out});
      } while (stream_.avail_out == 0);
    } while (!bytes.empty());
  }

 private:
  WritableFile& file_;
  z_stream stream_{};
  std::vector<char> out_;
};

template <class T>
void append(std::string& to, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  to.append(bytes, sizeof(T));
}

}  // namespace

struct RecordWriter::State {
  // What is in the buffer goes on, `last` bytes after it without passing through.
  void drain(std::string_view last = {}) {
    if (deflater) {
      deflater->add(buffer, Z_NO_FLUSH);
      deflater->add(last, Z_NO_FLUSH);
    } else {
      file->append(buffer);
      file->append(last);
    }
    buffer.clear();
  }

  std::string path;
  std::unique_ptr<WritableFile> file;
  std::unique_ptr<Deflater> deflater;
  std::string buffer;
  bool durable = false;
};

RecordWriter::RecordWriter(const std::string& path, RecordWriterOptions options) {
  if (options.level < 1 || options.level > 9) {
    throw InvalidArgumentError(
        cat("The compression level must be from 1 to 9, got ", options.level, "."));
  }
  state_ = std::make_unique<State>();
  state_->path = path;
  state_->durable = options.durable;
  state_->file = file_system_of(path).create(path);
  if (options.compression != Compression::kNone) {
    state_->deflater = std::make_unique<Deflater>(*state_->file, options);
  }
}

RecordWriter::~RecordWriter() {
  if (!state_) return;
  try {
    close();
  } catch (const Error&) {  // the documented way to see it is close()
  }
}
RecordWriter::RecordWriter(RecordWriter&&) noexcept = default;
RecordWriter& RecordWriter::operator=(RecordWriter&& other) noexcept {
  RecordWriter old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

RecordWriter::State& RecordWriter::open_state() const {
  if (!state_) throw FailedPreconditionError("This RecordWriter was moved to another.");
  if (!state_->file)
    throw FailedPreconditionError(cat(state_->path, ": the record file is closed."));
  return *state_;
}

void RecordWriter::write(std::string_view record) {
  State& s = open_state();
  const std::uint64_t length = record.size();
  char header[8];
  std::memcpy(header, &length, sizeof(header));
  s.buffer.append(header, sizeof(header));
  append(s.buffer, mask_crc32c(crc32c({header, sizeof(header)})));
  if (record.size() < kBuffer) {
    s.buffer += record;
  } else {
    s.drain(record);
  }
  append(s.buffer, mask_crc32c(crc32c(record)));
  if (s.buffer.size() >= kBuffer) s.drain();
}

void RecordWriter::flush() {
  State& s = open_state();
  s.drain();
  if (s.deflater) s.deflater->add({}, Z_SYNC_FLUSH);
  s.file->flush();
}

void RecordWriter::close() {
  if (!state_) return;
  State& s = *state_;
  if (!s.file) return;
  // Closed for its user whatever happens.
  const std::unique_ptr<WritableFile> file = std::move(s.file);
  const std::unique_ptr<Deflater> deflater = std::move(s.deflater);
  if (deflater) {
    deflater->add(s.buffer, Z_FINISH);
  } else {
    file->append(s.buffer);
  }
  s.buffer.clear();
  if (s.durable) file->sync();
  file->close();
}

}  // namespace tandem::fs
