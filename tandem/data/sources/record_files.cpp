#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/file_datasets.h"
#include "tandem/data/sources/files.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/record_file.h"

namespace tandem::data {

struct TFRecordDataset::Skipped {
  std::atomic<std::int64_t> count{0};
};

namespace {

// ---- TFRecord ----

class RecordElements final : public FileElements {
 public:
  RecordElements(const std::string& path, const TFRecordOptions& options,
                 std::atomic<std::int64_t>* skipped)
      : reader_(path, reader_options(options, [this] { check(); })), skipped_(skipped) {}

  bool next(Element& out) override {
    std::string_view record;
    if (!next_record(record)) return false;
    put_string(out, record);
    return true;
  }
  bool next_text(std::string& out) override {
    std::string_view record;
    if (!next_record(record)) return false;
    out.assign(record);
    return true;
  }
  void visit_state(StateArchive& state) override { visit_place_or_end(state, reader_); }
  std::int64_t place() const override { return static_cast<std::int64_t>(reader_.record_offset()); }

 private:
  bool next_record(std::string_view& record) {
    const bool found = reader_.next(record);
    if (reader_.num_skipped() != reported_) {
      skipped_->fetch_add(reader_.num_skipped() - reported_, std::memory_order_relaxed);
      reported_ = reader_.num_skipped();
    }
    return found;
  }

  static fs::RecordReaderOptions reader_options(const TFRecordOptions& options,
                                                std::function<void()> check) {
    fs::RecordReaderOptions out;
    out.compression = fs::compression_of(options.compression_type);
    if (options.buffer_size > 0) out.buffer_bytes = options.buffer_size;
    out.skip_corrupt = options.skip_corrupt;
    out.check = std::move(check);
    out.max_record_bytes = most_bytes(options, out.max_record_bytes);
    return out;
  }

  fs::RecordReader reader_;
  std::atomic<std::int64_t>* skipped_;
  std::int64_t reported_ = 0;
};

// ---- Records of one length ----

class FixedLengthElements final : public FileElements {
 public:
  FixedLengthElements(const std::string& path, std::int64_t record_bytes,
                      const FixedLengthRecordOptions& options)
      : stream_(stream_of(path, options)),
        record_(static_cast<std::size_t>(record_bytes)),
        header_(static_cast<std::uint64_t>(options.header_bytes)),
        footer_(static_cast<std::size_t>(options.footer_bytes)),
        compressed_(!options.compression_type.empty()) {
    if (compressed_) {
      if (stream_.skip(header_) < header_) {
        throw DataLossError(cat(path, ": the file ends within its header of ", header_, " bytes."));
      }
      return;
    }
    const std::uint64_t size = fs::file_system_of(path).stat(path).size;
    if (size < header_ || size - header_ < footer_ || (size - header_ - footer_) % record_ != 0) {
      throw InvalidArgumentError(misfit(size));
    }
    left_ = (size - header_ - footer_) / record_;
    stream_.skip(header_);
  }

  bool next(Element& out) override {
    if (ended_ || (!compressed_ && left_ == 0)) return false;
    const std::size_t whole = record_ + (compressed_ ? footer_ : 0);
    ended_ = true;  // unless it can be read: an error is reported once
    const std::string_view bytes = stream_.peek(whole);
    if (bytes.size() < whole) {
      if (compressed_ && bytes.size() == footer_) return false;
      throw DataLossError(compressed_ ? misfit(stream_.offset() + bytes.size())
                                      : cat(stream_.path(),
                                            ": the file became shorter while it was "
                                            "read."));
    }
    ended_ = false;
    stream_.consume(record_);
    --left_;
    put_string(out, bytes.substr(0, record_));
    return true;
  }

  std::int64_t place() const override {
    return static_cast<std::int64_t>(stream_.offset() - record_);
  }

  void visit_state(StateArchive& state) override {
    visit_place(state, stream_);
    state.value(left_);
    state.value(ended_);
  }

 private:
  std::string misfit(std::uint64_t size) const {
    return cat("Excluding the header (", header_, " bytes) and footer (", footer_,
               " bytes), input file \"", stream_.path(), "\" has body length ",
               static_cast<std::int64_t>(size) - static_cast<std::int64_t>(header_ + footer_),
               " bytes, which is not an exact multiple of the record length (", record_,
               " bytes).");
  }

  fs::ByteStream stream_;
  const std::size_t record_;
  const std::uint64_t header_;
  const std::size_t footer_;
  const bool compressed_;
  std::uint64_t left_ = 0;
  bool ended_ = false;
};

FilesPlan fixed_length_plan(std::int64_t record_bytes, FixedLengthRecordOptions options) {
  check_options(options);
  static constexpr std::int64_t kMax = std::int64_t{1} << 40;
  const auto check = [](const char* name, std::int64_t value, std::int64_t least) {
    if (value < least || value > kMax) {
      throw InvalidArgumentError(
          cat("`", name, "` must be ",
              value > kMax ? cat("at most ", kMax) : cat(least > 0 ? "> 0" : ">= 0"), ", got ",
              value, "."));
    }
  };
  check("record_bytes", record_bytes, 1);
  check("header_bytes", options.header_bytes, 0);
  check("footer_bytes", options.footer_bytes, 0);
  const std::int64_t parallel = parallel_reads(options);
  return {"FixedLengthRecord",
          [record_bytes, options = std::move(options)](const std::string& path) {
            return std::make_unique<FixedLengthElements>(path, record_bytes, options);
          },
          string_spec(), parallel};
}

template <class Names>
Dataset record_dataset(Names&& names, TFRecordOptions options,
                       std::shared_ptr<std::atomic<std::int64_t>> skipped) {
  check_options(options);
  const std::int64_t parallel = parallel_reads(options);
  return read_files(
      std::forward<Names>(names),
      {"TFRecord",
       [options = std::move(options), skipped = std::move(skipped)](const std::string& path) {
         return std::make_unique<RecordElements>(path, options, skipped.get());
       },
       string_spec(), parallel});
}

}  // namespace

TFRecordDataset::TFRecordDataset(FileNames filenames, TFRecordOptions options)
    : skipped_(std::make_shared<Skipped>()) {
  Dataset::operator=(
      record_dataset(std::move(filenames).list(), std::move(options),
                     std::shared_ptr<std::atomic<std::int64_t>>(skipped_, &skipped_->count)));
}
TFRecordDataset::TFRecordDataset(const Dataset& filenames, TFRecordOptions options)
    : skipped_(std::make_shared<Skipped>()) {
  Dataset::operator=(
      record_dataset(filenames, std::move(options),
                     std::shared_ptr<std::atomic<std::int64_t>>(skipped_, &skipped_->count)));
}
std::int64_t TFRecordDataset::num_skipped() const {
  return skipped_->count.load(std::memory_order_relaxed);
}

FixedLengthRecordDataset::FixedLengthRecordDataset(FileNames filenames, std::int64_t record_bytes,
                                                   FixedLengthRecordOptions options)
    : Dataset(read_files(std::move(filenames).list(),
                         fixed_length_plan(record_bytes, std::move(options)))) {}
FixedLengthRecordDataset::FixedLengthRecordDataset(const Dataset& filenames,
                                                   std::int64_t record_bytes,
                                                   FixedLengthRecordOptions options)
    : Dataset(read_files(filenames, fixed_length_plan(record_bytes, std::move(options)))) {}

// ---- Writing ----

struct TFRecordWriter::State {
  fs::RecordWriter writer;
};

TFRecordWriter::TFRecordWriter(const String& filename, TFRecordWriterOptions options)
    : state_(new State{fs::RecordWriter(
          filename, {fs::compression_of(options.compression_type), options.compression_level})}) {}
TFRecordWriter::~TFRecordWriter() = default;
TFRecordWriter::TFRecordWriter(TFRecordWriter&&) noexcept = default;
TFRecordWriter& TFRecordWriter::operator=(TFRecordWriter&&) noexcept = default;

TFRecordWriter::State& TFRecordWriter::state() const {
  if (!state_) throw FailedPreconditionError("This TFRecordWriter was moved to another.");
  return *state_;
}

void TFRecordWriter::write(std::string_view record) { state().writer.write(record); }

void TFRecordWriter::write(const Dataset& records) {
  for (const Element& element : records) {
    if (element.size() != 1 || element[0].dtype() != DType::kString) {
      throw InvalidArgumentError(
          cat("Only datasets of string tensors can be written as records, got ",
              to_string(records.element_spec()), "."));
    }
    for (const std::string& record : element[0].data<std::string>()) write(record);
  }
}

void TFRecordWriter::flush() { state().writer.flush(); }
void TFRecordWriter::close() {
  if (state_) state_->writer.close();
}

}  // namespace tandem::data
