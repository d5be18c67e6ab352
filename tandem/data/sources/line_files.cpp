#include <new>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/file_datasets.h"
#include "tandem/data/sources/files.h"

namespace tandem::data {
namespace {

class LineElements final : public FileElements {
 public:
  LineElements(const std::string& path, const FileOptions& options)
      : stream_(stream_of(path, options)), most_(most_bytes(options)) {}

  bool next(Element& out) override {
    skip();
    std::string_view line = stream_.peek_some();
    if (line.empty()) return false;
    begin_ = stream_.offset();
    find(line);
    if (line.find('\r') == std::string_view::npos) {
      put_string(out, line);
    } else {  // TensorFlow drops every one
      without_.clear();
      for (const char c : line) {
        if (c != '\r') without_ += c;
      }
      put_string(out, without_);
    }
    return true;
  }

  std::int64_t place() const override { return static_cast<std::int64_t>(begin_); }

  void visit_state(StateArchive& state) override {
    if (!state.restoring()) skip();
    visit_place(state, stream_);
  }

 private:
  // Takes the next line, without its end, from the stream; `line` is what the stream holds. A file
  // of zeros that was compressed well must not fill the memory.
  void find(std::string_view& line) {
    std::size_t end = line.find('\n');
    while (end == std::string_view::npos && line.size() <= most_) {
      check();
      const std::size_t seen = line.size();
      try {
        if (stream_.peek(seen + 1).size() == seen) break;  // the file ends without a line end
      } catch (const std::bad_alloc&) {
        too_large(seen);
      } catch (...) {
        stream_.drop();  // what there is of the line
        throw;
      }
      line = stream_.peek_some();
      end = line.find('\n', seen);
    }
    const bool ended = end != std::string_view::npos;
    if (ended) line = line.substr(0, end);
    if (line.size() > most_) too_large(line.size());
    stream_.consume(line.size() + (ended ? 1 : 0));
  }

  [[noreturn]] void too_large(std::size_t seen) {
    passing_ = true;
    throw_too_large(stream_.path(), "the line", stream_.offset(), seen, most_);
  }

  // What is left of a line that was too large.
  void skip() {
    while (passing_) {
      check();
      const std::string_view bytes = stream_.peek_some();
      const std::size_t end = bytes.find('\n');
      passing_ = !bytes.empty() && end == std::string_view::npos;
      if (end != std::string_view::npos) {
        stream_.consume(end + 1);
      } else {
        stream_.drop();
      }
    }
  }

  fs::ByteStream stream_;
  const std::size_t most_;
  std::uint64_t begin_ = 0;  // of the line last given
  bool passing_ = false;
  std::string without_;
};

FilesPlan line_plan(FileOptions options) {
  check_options(options);
  const std::int64_t parallel = parallel_reads(options);
  return {"TextLine",
          [options = std::move(options)](const std::string& path) {
            return std::make_unique<LineElements>(path, options);
          },
          string_spec(), parallel};
}

}  // namespace

TextLineDataset::TextLineDataset(FileNames filenames, FileOptions options)
    : Dataset(read_files(std::move(filenames).list(), line_plan(std::move(options)))) {}
TextLineDataset::TextLineDataset(const Dataset& filenames, FileOptions options)
    : Dataset(read_files(filenames, line_plan(std::move(options)))) {}

}  // namespace tandem::data
