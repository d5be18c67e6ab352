#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "tandem/core/csv.h"
#include "tandem/core/error.h"
#include "tandem/data/file_datasets.h"
#include "tandem/data/sources/files.h"

namespace tandem::data {
namespace {

class CsvElements final : public FileElements {
 public:
  CsvElements(const std::string& path, std::shared_ptr<const CsvReader> reader,
              const CsvOptions& options)
      : stream_(stream_of(path, options)),
        reader_(std::move(reader)),
        most_(most_bytes(options)),
        has_header_(options.header),
        header_due_(options.header) {}

  bool next(Element& out) override {
    if (header_due_) pass_header();
    std::string_view record;
    if (!find(record)) return false;
    const std::string where =
        cat("record ", number_++, " of ", stream_.path(), " (line ", line_, ")");
    out.clear();
    try {
      reader_->split(record, fields_);
      // A line without anything has one empty field, which need not be of a wanted column.
      const auto& wanted = reader_->format().columns;
      if (record.empty() && (wanted.empty() || wanted.front() == 0)) fields_.assign(1, "");
      reader_->check_count(fields_.size(), where);
      for (std::size_t i = 0; i < fields_.size(); ++i) {
        Array value(reader_->format().defaults[i].dtype(), Shape{});
        reader_->convert(static_cast<int>(i), fields_[i], value, 0, where);
        out.emplace_back(std::move(value));
      }
    } catch (const InvalidArgumentError& error) {
      std::string text = error.what();
      if (text.find(where) == std::string::npos) text += ", in " + where;
      if (line_ == 1 && !has_header_ && text.find("is not a valid") != std::string::npos) {
        text += text.back() == '!' ? " " : ". ";
        text += "If that line names the columns, CsvOptions{.header = true} passes it over.";
      }
      throw InvalidArgumentError(text);
    }
    return true;
  }

  std::int64_t place() const override { return static_cast<std::int64_t>(begin_); }

  void visit_state(StateArchive& state) override {
    if (!state.restoring()) skip();
    visit_place(state, stream_);
    state.value(number_);
    state.value(next_line_);
    state.value(header_due_);
  }

 private:
  // Within a record, or at its end.
  class Scan {
   public:
    explicit Scan(const CsvFormat& format) : quotes_(format.quotes), delimiter_(format.delimiter) {}
    // Looks at the next byte; true if the record ended before it.
    bool ends_before(char c) {
      if (state_ == kQuoted) {
        if (c == '"') state_ = kQuoteSeen;
        if (c == '\n') ++lines_;
      } else if (c == '\n' || c == '\r') {
        return true;
      } else if (c == '"' && quotes_ && state_ != kPlain) {
        state_ = kQuoted;  // opened, or a doubled quote
      } else {
        state_ = c == delimiter_ ? kFieldBegins : kPlain;
      }
      return false;
    }
    // Lines so far, with that at whose end it ends.
    std::int64_t lines() const { return lines_; }

   private:
    std::int64_t lines_ = 1;
    enum { kFieldBegins, kPlain, kQuoted, kQuoteSeen } state_ = kFieldBegins;
    bool quotes_;
    char delimiter_;
  };

  // Where it cannot be read, the records behind it can.
  void pass_header() {
    header_due_ = false;
    std::string_view header;
    const auto fail = [this](std::string_view why) {
      throw InvalidArgumentError(cat("Can't read the header of ", stream_.path(), ": ", why, "."));
    };
    if (!find(header)) fail("the file is empty");
    try {
      reader_->split(header, fields_);
    } catch (const InvalidArgumentError& error) {
      fail(error.what());
    }
  }

  // Takes the next record, without its line end, from the stream. A field that is never closed must
  // not read a whole disk into memory.
  bool find(std::string_view& record) {
    skip();
    std::string_view bytes = stream_.peek_some();
    if (bytes.empty()) return false;
    begin_ = stream_.offset();
    Scan scan(reader_->format());
    std::size_t at = 0;
    // True if there is a byte at `at`.
    const auto there = [&] {
      if (at < bytes.size()) return true;
      check();
      try {
        if (stream_.peek(at + 1).size() <= at) return false;
      } catch (const std::bad_alloc&) {
        too_large(at, scan);
      } catch (...) {
        stream_.drop();  // what there is of the record
        throw;
      }
      bytes = stream_.peek_some();
      return true;
    };
    while (there() && !scan.ends_before(bytes[at])) {
      if (++at > most_) too_large(at, scan);
    }
    line_ = next_line_;
    next_line_ += scan.lines();
    const std::size_t size = at;
    if (at < bytes.size()) {
      const bool carriage = bytes[at] == '\r';
      ++at;
      if (carriage && there() && bytes[at] == '\n') ++at;
    }
    record = bytes.substr(0, size);
    stream_.consume(at);
    return true;
  }

  [[noreturn]] void too_large(std::size_t seen, const Scan& scan) {
    const std::uint64_t place = stream_.offset();
    stream_.consume(seen);
    passing_ = scan;
    throw_too_large(stream_.path(),
                    cat("record ", number_++, " (is a quote missing?), line ", next_line_), place,
                    seen, most_);
  }

  // What is left of a record that was too large.
  void skip() {
    while (passing_) {
      check();
      const std::string_view bytes = stream_.peek_some();
      std::size_t at = 0;
      while (at < bytes.size() && !passing_->ends_before(bytes[at])) ++at;
      if (at < bytes.size()) {
        const bool carriage = bytes[at] == '\r';
        next_line_ += passing_->lines();
        stream_.consume(at + 1);
        passing_.reset();
        if (carriage && stream_.peek(1) == "\n") stream_.consume(1);
      } else if (bytes.empty()) {
        passing_.reset();
      } else {
        stream_.drop();
      }
    }
  }

  fs::ByteStream stream_;
  std::shared_ptr<const CsvReader> reader_;
  const std::size_t most_;
  const bool has_header_;
  bool header_due_;
  std::optional<Scan> passing_;  // of a record that was too large
  std::vector<std::string> fields_;
  std::uint64_t begin_ = 0;  // of the record last given
  std::int64_t number_ = 0;
  std::int64_t line_ = 0, next_line_ = 1;  // of the file, where the record begins and the next one
};

FilesPlan csv_plan(const std::vector<CsvColumn>& columns, CsvOptions options) {
  check_options(options);
  if (columns.empty()) throw InvalidArgumentError("A CsvDataset needs at least one column.");
  const char delimiter = options.field_delim;
  if (delimiter == '\n' || delimiter == '\r' || delimiter == '\0' ||
      (delimiter == '"' && options.use_quote_delim)) {
    throw InvalidArgumentError(
        cat("`field_delim` must be a character that does not end a record, nor quote a field; got ",
            delimiter == '"' ? "a quotation mark" : "one of character code ",
            delimiter == '"' ? "" : std::to_string(int{delimiter}), "."));
  }
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
