#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "tandem/core/csv.h"
#include "tandem/core/error.h"
#include "tandem/data/file_datasets.h"
#include "tandem/data/internal/files.h"

namespace tandem::data {
namespace {

// A field that is never closed must not read a whole disk into memory.
constexpr std::size_t kMostRecordBytes = std::size_t{1} << 30;

class CsvElements final : public FileElements {
 public:
  CsvElements(const std::string& path, std::shared_ptr<const CsvReader> reader,
              const CsvOptions& options)
      : stream_(stream_of(path, options)), reader_(std::move(reader)) {
    if (options.header) pass_over();
  }

  bool next(Element& out) override {
    std::size_t whole = 0;
    std::string_view record;
    if (!find(record, whole)) return false;
    const std::string where = cat("record ", number_++, " of ", stream_.path());
    out.clear();
    try {
      reader_->split(record, fields_);
      if (record.empty()) fields_.assign(1, "");  // a line of one empty field
      reader_->check_count(fields_.size(), where);
      for (std::size_t i = 0; i < fields_.size(); ++i) {
        Array value(reader_->format().defaults[i].dtype(), Shape{});
        reader_->convert(static_cast<int>(i), fields_[i], value, 0, where);
        out.emplace_back(std::move(value));
      }
    } catch (const InvalidArgumentError& error) {
      stream_.consume(whole);
      const std::string text = error.what();
      throw InvalidArgumentError(text.find(where) == std::string::npos ? cat(text, ", in ", where)
                                                                       : text);
    }
    stream_.consume(whole);
    return true;
  }

  void visit_state(StateArchive& state) override {
    visit_place(state, stream_);
    state.value(number_);
  }

 private:
  void pass_over() {
    std::size_t whole = 0;
    std::string_view record;
    if (find(record, whole)) stream_.consume(whole);
  }

  // The next record, and its length with the line end.
  bool find(std::string_view& record, std::size_t& whole) {
    const CsvFormat& format = reader_->format();
    std::string_view bytes = stream_.peek_some();
    if (bytes.empty()) return false;
    enum { kFieldBegins, kPlain, kQuoted, kQuoteSeen } state = kFieldBegins;
    std::size_t at = 0;
    // True if there is a byte at `at`.
    const auto there = [&] {
      if (at < bytes.size()) return true;
      if (stream_.peek(at + 1).size() <= at) return false;
      bytes = stream_.peek_some();
      return true;
    };
    for (; there(); ++at) {
      const char c = bytes[at];
      if (state == kQuoted) {
        if (c == '"') state = kQuoteSeen;
      } else if (c == '\n' || c == '\r') {
        break;
      } else if (c == '"' && format.quotes && state != kPlain) {
        state = kQuoted;  // opened, or a doubled quote
      } else {
        state = c == format.delimiter ? kFieldBegins : kPlain;
      }
      if (at >= kMostRecordBytes) {
        throw InvalidArgumentError(cat(stream_.path(), ": record ", number_, " is larger than ",
                                       kMostRecordBytes, " bytes; is a quote missing?"));
      }
    }
    const std::size_t size = at;
    whole = at;
    if (there()) {
      const bool carriage = bytes[at] == '\r';
      ++at;
      if (carriage && there() && bytes[at] == '\n') ++at;
      whole = at;
    }
    record = bytes.substr(0, size);
    return true;
  }

  fs::ByteStream stream_;
  std::shared_ptr<const CsvReader> reader_;
  std::vector<std::string> fields_;
  std::int64_t number_ = 0;
};

FilesPlan csv_plan(const std::vector<CsvColumn>& columns, CsvOptions options) {
  check_options(options);
  if (columns.empty()) throw InvalidArgumentError("A CsvDataset needs at least one column.");
  CsvFormat format;
  format.delimiter = options.field_delim;
  format.quotes = options.use_quote_delim;
  format.missing = options.na_value;
  format.columns = options.select_cols;
  if (!options.exclude_cols.empty()) {
    if (!options.select_cols.empty()) {
      throw InvalidArgumentError("Only one of `select_cols` and `exclude_cols` can be given.");
    }
    const auto& out = options.exclude_cols;
    for (std::int64_t column = 0; format.columns.size() < columns.size(); ++column) {
      if (std::find(out.begin(), out.end(), column) == out.end()) format.columns.push_back(column);
    }
  }
  ElementSpec spec;
  for (const CsvColumn& column : columns) {
    format.defaults.push_back(column.default_value.array());
    spec.push_back({column.default_value.dtype(), PartialShape::scalar()});
  }
  const std::int64_t parallel =
      options.num_parallel_reads == kAutotune ? 4 : options.num_parallel_reads;
  auto reader = std::make_shared<const CsvReader>(std::move(format));
  return {"CSV",
          [reader = std::move(reader), options = std::move(options)](const std::string& path) {
            return std::make_unique<CsvElements>(path, reader, options);
          },
          std::move(spec), parallel};
}

}  // namespace

CsvDataset::CsvDataset(FileNames filenames, const std::vector<CsvColumn>& columns,
                       CsvOptions options)
    : Dataset(read_files(std::move(filenames).list(), csv_plan(columns, std::move(options)))) {}
CsvDataset::CsvDataset(const Dataset& filenames, const std::vector<CsvColumn>& columns,
                       CsvOptions options)
    : Dataset(read_files(filenames, csv_plan(columns, std::move(options)))) {}

}  // namespace tandem::data
