#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tandem/data/dataset.h"
#include "tandem/data/fusion/row_stage.h"
#include "tandem/data/observe/stage_error.h"
#include "tandem/data/stages/element_program.h"
#include "tandem/data/stages/held_element.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/stale_files.h"

namespace tandem::data {
namespace {

// The file: "TANDEMCA", then for each element the size (uint64, little-endian) of the bytes of a
// StateArchive that holds it, and these, which carry a checksum; last kEnd and the number of
// elements. It gets its name when it is complete.
constexpr std::string_view kMagic = "TANDEMCA";
constexpr std::uint64_t kEnd = ~std::uint64_t{0};
constexpr std::size_t kReadAhead = std::size_t{256} << 10;

std::string word(std::uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// The path, whose folders are there now.
const std::string& with_folders(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash != std::string::npos && slash > 0) {
    const std::string folder = path.substr(0, slash);
    if (!fs::exists(folder)) fs::file_system_of(folder).make_directories(folder);
  }
  return path;
}

class CacheFileWriter {
 public:
  explicit CacheFileWriter(const std::string& path) : file_(with_folders(path)) {
    fs::remove_stale_files(path);
    file_.append(kMagic);
  }
  void add(Element& element) {
    StateArchive archive;
    archive.value(element);
    const std::string bytes = archive.bytes();
    file_.append(word(bytes.size()));
    file_.append(bytes);
    ++count_;
  }
  void finish() {
    file_.append(word(kEnd) + word(count_));
    file_.finish();
  }

 private:
  fs::AtomicFile file_;
  std::uint64_t count_ = 0;
};

class CacheFileReader {
 public:
  explicit CacheFileReader(const std::string& path, const DatasetBase& dataset)
      : path_(path),
        dataset_(dataset),
        file_(fs::file_system_of(path).open(path)),
        size_(file_->known_size() ? *file_->known_size()
                                  : fs::file_system_of(path).stat(path).size) {}

  bool next(Element& out) {
    if (damaged_) return false;
    if (at_ == 0) check_kind();
    const std::uint64_t at = at_;
    const std::uint64_t size = number();
    if (size == kEnd) {
      at_ = at;  // ever after
      if (number(8) != count_) damaged("elements are missing");
      return false;
    }
    if (size > size_ - at_) damaged("it is cut off");
    try {
      StateArchive archive(take(static_cast<std::size_t>(size)));
      archive.value(out);
      archive.finish();
    } catch (const DataLossError&) {
      damaged("the bytes of an element are not those that were written");
    } catch (const Error& error) {
      damaged(error.what());
    }
    given_at_ = at;
    if (count_++ == 0) check(out);
    return true;
  }

  std::uint64_t count() const { return count_; }
  // The origin of the element last given.
  Origin origin() const { return {shown_path_, static_cast<std::int64_t>(given_at_)}; }

  void visit_state(StateArchive& state) {
    state.value(at_);
    state.value(count_);
    state.require(at_ <= size_, "its cache file is longer");
    if (state.restoring()) buffer_.clear();
  }

 private:
  // The file may be another pipeline's. What only iterating would show, after functions that are
  // called, is not asked of the dataset.
  void check(const Element& element) {
    try {
      trace_functions(dataset_);
    } catch (const Error&) {
      return;  // a function that must be traced cannot be: an iteration without the file throws the
               // error
    }
    if (dataset_.num_components() < 0) return;
    const ElementSpec& wanted = dataset_.element_spec();
    bool fits = element.size() == wanted.size();
    ElementSpec found;
    for (std::size_t i = 0; i < element.size(); ++i) {
      found.push_back({element[i].dtype(), element[i].partial_shape()});
      if (!fits) continue;
      fits = (wanted[i].dtype == DType::kInvalid || wanted[i].dtype == found[i].dtype) &&
             wanted[i].shape.is_compatible(found[i].shape);
    }
    if (fits) return;
    damaged_ = true;
    throw InvalidArgumentError(
        cat("Cache file ", path_, " holds elements ", found, ", but this dataset's are ", wanted,
            ". It is another pipeline's: give this one another file name, or "
            "remove the file, and it will be written again."));
  }

  // It may be any file: the message must not advise removing it.
  void check_kind() {
    if (size_ >= kMagic.size() && take(kMagic.size()) == kMagic) return;
    damaged_ = true;
    throw InvalidArgumentError(
        cat("cache: the file ", path_,
            " is there already and is no cache. Give another name; or remove "
            "the file, if it is not needed, and it will be written."));
  }

  // Nothing can be read beyond: the next call reports the end.
  [[noreturn]] void damaged(std::string_view why) {
    damaged_ = true;
    throw DataLossError(cat("Cache file ", path_, " is damaged at offset ", at_, ": ", why,
                            why.ends_with('.') ? "" : ".",
                            " Remove it, and it will be written again."));
  }

  // The next bytes; they stay until the next call.
  std::string_view take(std::size_t count) {
    if (count > size_ - at_) damaged("it is cut off");
    if (at_ < begin_ || at_ + count > begin_ + buffer_.size()) {
      buffer_.resize(std::min<std::uint64_t>(std::max(count, kReadAhead), size_ - at_));
      begin_ = at_;
      buffer_.resize(file_->read(at_, buffer_));
      if (count > buffer_.size()) damaged("it is cut off");
    }
    const std::string_view taken = std::string_view(buffer_).substr(at_ - begin_, count);
    at_ += count;
    return taken;
  }

  std::uint64_t number(std::uint64_t ahead = 0) {
    const std::uint64_t at = at_;
    at_ += ahead;
    if (at_ > size_) damaged("it is cut off");
    std::uint64_t value = 0;
    const std::string_view bytes = take(8);
    for (std::size_t i = 0; i < 8; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    if (ahead > 0) at_ = at;
    return value;
  }

  const std::string path_;
  const std::shared_ptr<const Element> shown_path_ =
      std::make_shared<const Element>(Element{Tensor(path_)});
  const DatasetBase& dataset_;
  const std::unique_ptr<fs::ReadableFile> file_;
  const std::uint64_t size_;
  std::uint64_t at_ = 0;
  std::uint64_t given_at_ = 0;  // of the element last given
  std::uint64_t count_ = 0;
  bool damaged_ = false;
  std::string buffer_;
  std::uint64_t begin_ = 0;  // offset of the buffer
};

template <class Work>
auto in_cache(Work work) {
  try {
    return work();
  } catch (...) {
    std::rethrow_exception(with_line(std::current_exception(), "in cache"));
  }
}

// Reads the file if it is there; else passes the input's elements on and writes them.
class CacheFileIterator final : public IteratorBase {
 public:
  CacheFileIterator(const DatasetBase& input, const std::string& path, IterationContext context)
      : dataset_(input), path_(path), context_(std::move(context)) {
    if (in_cache([&] { return fs::exists(path_); })) {
      if (fs::file_system_of(path_).stat(path_).is_directory) {
        throw FailedPreconditionError(cat("cache: ", path_,
                                          " is a directory, and a cache is one file. Give it the "
                                          "name of a file, in this directory for example."));
      }
      in_cache([&] { reader_.emplace(path_, dataset_); });
    } else {
      input_ = dataset_.iterator(context_);
    }
  }

  bool next(Element& out) override {
    if (reader_) return read(out);
    if (held_.give(out)) return true;
    if (!begun_) {
      begun_ = true;
      write([&] { writer_ = std::make_unique<CacheFileWriter>(path_); });
    }
    bool gave = false;
    try {
      gave = input_->next(out);
    } catch (...) {
      writer_ = nullptr;  // an element is missing
      throw;
    }
    if (gave) {
      const std::int64_t number = number_++;
      if (!writer_) return true;
      try {
        writer_->add(out);
      } catch (...) {
        held_.keep(out);
        fail(number);
      }
    } else if (writer_) {
      write([&] { std::exchange(writer_, nullptr)->finish(); });
    }
    return gave;
  }

  Origin origin() const override { return reader_ ? reader_->origin() : input_->origin(); }

  void visit_state(StateArchive& state) override {
    state.stage("FileCache");
    bool reads = reader_.has_value();
    state.value(reads);
    if (reads) {
      if (!reader_) reader_.emplace(path_, dataset_);
      return reader_->visit_state(state);
    }
    reader_.reset();
    if (!input_) input_ = dataset_.iterator(context_);
    held_.visit_state(state, begun_);
    input_->visit_state(state);
  }

 private:
  bool read(Element& out) {
    const auto number = static_cast<std::int64_t>(reader_->count());
    try {
      return reader_->next(out);
    } catch (...) {
      throw_stage_error("cache", number);
    }
  }

  template <class Work>
  void write(Work work) {
    try {
      work();
    } catch (...) {
      fail(number_);
    }
  }
  [[noreturn]] void fail(std::int64_t number) {
    writer_ = nullptr;  // the iteration goes on without a file
    throw_write_error("cache", number, path_, "the name of another file");
  }

  const DatasetBase& dataset_;
  const std::string& path_;
  IterationContext context_;
  std::optional<CacheFileReader> reader_;
  std::unique_ptr<IteratorBase> input_;
  std::unique_ptr<CacheFileWriter> writer_;
  HeldElement held_;
  std::int64_t number_ = 0;
  bool begun_ = false;  // a restored iteration, which lacks the first elements, writes nothing
};

class CacheFileDataset final : public UnaryDataset {
 public:
  CacheFileDataset(DatasetRef input, std::string path)
      : UnaryDataset(std::move(input)), path_(std::move(path)) {}
  std::string name() const override { return "FileCache"; }
  bool reads_files() const override { return false; }  // it is of the whole
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return std::make_unique<CacheFileIterator>(input(), path_, context);
  }

 private:
  const std::string path_;
};

}  // namespace

Dataset Dataset::cache(const String& filename) const {
  return filename.empty() ? cache() : make_dataset<CacheFileDataset>(base_of(*this), filename);
}

}  // namespace tandem::data
