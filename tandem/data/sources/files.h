#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/data/dataset_base.h"
#include "tandem/data/file_datasets.h"
#include "tandem/fs/byte_stream.h"

namespace tandem::data {

/// The elements of one open file. After an exception it goes on behind the damage, or ends.
class FileElements {
 public:
  virtual ~FileElements() = default;
  virtual bool next(Element& out) = 0;
  /// The next element where that is one string scalar.
  virtual bool next_text(std::string& out);
  /// Where in the (decompressed) content the element last given begins; -1: unknown.
  virtual std::int64_t place() const { return -1; }
  /// Where it is: the place in the (decompressed) content, and what is not read again from there. A
  /// restored one was just opened.
  virtual void visit_state(StateArchive& state) = 0;

  /// Who reads, for loops that may take long without giving an element.
  void read_for(const IterationContext& context) { context_ = &context; }

 protected:
  void check() const {
    if (context_) context_->check();
  }

 private:
  const IterationContext* context_ = nullptr;
};

/// A pass whose elements may be had as texts: batches then take them into their rows.
class TextSource {
 public:
  virtual ~TextSource() = default;
  /// Whether each element is one string scalar.
  virtual bool gives_texts() const = 0;
  /// Like IteratorBase::next, with a text as the element.
  virtual bool next_text(std::string& out) = 0;
};

/// Saves a place in a file, or goes to one.
template <class Reader>
void visit_place(StateArchive& state, Reader& reader) {
  std::uint64_t place = reader.offset();
  state.value(place);
  if (!state.restoring()) return;
  reader.seek(place);
  if (reader.offset() != place) {
    throw DataLossError(cat(reader.path(), ": the file ends before byte ", place,
                            ", where an iterator was saved. Was it changed?"));
  }
}

/// For a reader that may have ended before the content does, after damage.
template <class Reader>
void visit_place_or_end(StateArchive& state, Reader& reader) {
  bool ended = reader.ended();
  visit_place(state, reader);
  state.value(ended);
  if (state.restoring() && ended) reader.end();
}

/// Opens a file; throws where it cannot be read.
using OpenFile = std::function<std::unique_ptr<FileElements>(const std::string& path)>;

/// What a dataset of files is made of. Kept by it and its iterators.
struct FilesPlan {
  std::string name;  ///< of the stage: "TFRecord"
  OpenFile open;
  ElementSpec spec;
  std::int64_t num_parallel_reads = 0;
};

/// Datasets of a list of files, and of a dataset of their names.
Dataset read_files(std::vector<std::string> filenames, FilesPlan plan);
Dataset read_files(const Dataset& filenames, FilesPlan plan);

/// The spec of elements that are one string.
inline ElementSpec string_spec() { return {{DType::kString, PartialShape::scalar()}}; }

/// Files to read at a time.
template <class Options>
std::int64_t parallel_reads(const Options& options) {
  constexpr std::int64_t kChosen = 4;
  return options.num_parallel_reads == kAutotune ? kChosen : options.num_parallel_reads;
}

/// Puts one string scalar into `out`.
void put_string(Element& out, std::string_view text);

/// What the options of any dataset of files have in common.
template <class Options>
FileOptions file_options(const Options& options) {
  return {.compression_type = options.compression_type,
          .buffer_size = options.buffer_size,
          .num_parallel_reads = options.num_parallel_reads};
}

/// The stream that `options`, those of any of these datasets, ask for.
template <class Options>
fs::ByteStream stream_of(const std::string& path, const Options& options) {
  return fs::ByteStream(
      path, fs::compression_of(options.compression_type),
      options.buffer_size > 0 ? options.buffer_size : fs::ByteStream::kBufferBytes);
}

/// How many bytes a line or record may have.
template <class Options>
std::size_t most_bytes(const Options& options, std::size_t otherwise = std::size_t{1} << 30) {
  return options.max_record_bytes > 0 ? options.max_record_bytes : otherwise;
}

/// The next line or record, of which `held` bytes were looked at, is larger than `most` bytes, or
/// than there is memory for.
[[noreturn]] void throw_too_large(const std::string& path, const std::string& what,
                                  std::uint64_t place, std::uint64_t held, std::uint64_t most);

/// Throws InvalidArgumentError for wrong options, where the dataset is made.
void check_options(const FileOptions& options);
template <class Options>
void check_options(const Options& options) {
  check_options(file_options(options));
}

}  // namespace tandem::data
