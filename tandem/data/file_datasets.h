#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/data/dataset.h"
#include "tandem/data/file_names.h"

/// Datasets that read files; names, options and meaning are tf.data's. docs/data-files.md has
/// examples.
///
/// `filenames` is a name, several in braces, a vector or a tensor of them, or a dataset whose
/// elements are strings or vectors of them. Files are read one after the other, each when its turn
/// comes, through a buffer. A file that cannot be opened or is damaged is an error with its path;
/// the next call to the iterator goes on behind the damage or with the next file.
/// What lies before damage in a compressed file is given first. A line or record larger than
/// `max_record_bytes`, or than the memory left, is a ResourceExhaustedError with file and place,
/// and the next call passes over the rest of it: reading takes a few times the largest one's
/// memory, whatever a file holds.
namespace tandem::data {

/// The options that all of these datasets have.
struct FileOptions {
  String compression_type = {};  ///< "", "GZIP" or "ZLIB"
  std::size_t buffer_size = 0;   ///< bytes read at a time; 0: 256 KiB
  /// So many files are open at a time and give one element each in turn; each is read ahead on a
  /// thread of its own. 0: one file, on the consumer's thread.
  std::int64_t num_parallel_reads = 0;
  std::size_t max_record_bytes = 0;  ///< of a line or record; 0: 1 GiB, of TFRecords 4 GiB
};

struct TFRecordOptions {
  String compression_type = {};  ///< these three as in FileOptions
  std::size_t buffer_size = 0;
  std::int64_t num_parallel_reads = 0;
  bool skip_corrupt = false;         ///< pass over damaged records: see num_skipped
  std::size_t max_record_bytes = 0;  ///< as in FileOptions
};

/// The records of TFRecord files as string scalars. All checksums are checked: a damaged or cut-off
/// record is a DataLossError with file and offset.
class TANDEM_EXPORT TFRecordDataset : public Dataset {
 public:
  explicit TFRecordDataset(FileNames filenames, TFRecordOptions options = {});
  explicit TFRecordDataset(std::initializer_list<const char*> filenames,
                           TFRecordOptions options = {})
      : TFRecordDataset(FileNames(std::vector<String>(filenames.begin(), filenames.end())),
                        std::move(options)) {}
  explicit TFRecordDataset(std::initializer_list<String> filenames, TFRecordOptions options = {})
      : TFRecordDataset(FileNames(filenames), std::move(options)) {}
  explicit TFRecordDataset(const Dataset& filenames, TFRecordOptions options = {});
  /// Damaged stretches that were passed over so far, in all iterations.
  std::int64_t num_skipped() const;

 private:
  struct Skipped;
  std::shared_ptr<Skipped> skipped_;
};

/// The lines of text files, without their ends, as string scalars.
class TANDEM_EXPORT TextLineDataset : public Dataset {
 public:
  explicit TextLineDataset(FileNames filenames, FileOptions options = {});
  explicit TextLineDataset(std::initializer_list<const char*> filenames, FileOptions options = {})
      : TextLineDataset(FileNames(std::vector<String>(filenames.begin(), filenames.end())),
                        std::move(options)) {}
  explicit TextLineDataset(std::initializer_list<String> filenames, FileOptions options = {})
      : TextLineDataset(FileNames(filenames), std::move(options)) {}
  explicit TextLineDataset(const Dataset& filenames, FileOptions options = {});
};

struct FixedLengthRecordOptions {
  String compression_type = {};  ///< these three as in FileOptions
  std::size_t buffer_size = 0;
  std::int64_t num_parallel_reads = 0;
  std::int64_t header_bytes = 0;  ///< passed over at the beginning of each file
  std::int64_t footer_bytes = 0;  ///< and at its end
};

/// Records of `record_bytes` bytes each, as string scalars. A file whose size does not fit throws
/// InvalidArgumentError, DataLossError if it is compressed.
class TANDEM_EXPORT FixedLengthRecordDataset : public Dataset {
 public:
  FixedLengthRecordDataset(FileNames filenames, std::int64_t record_bytes,
                           FixedLengthRecordOptions options = {});
  FixedLengthRecordDataset(const Dataset& filenames, std::int64_t record_bytes,
                           FixedLengthRecordOptions options = {});
};

struct CsvOptions {
  String compression_type = {};  ///< these three as in FileOptions
  std::size_t buffer_size = 0;
  std::int64_t num_parallel_reads = 0;
  bool header = false;  ///< the first record of each file is passed over
  char field_delim = ',';
  bool use_quote_delim = true;  ///< fields may stand in double quotes, line ends inside
  String na_value = {};         ///< a missing value, as an empty field is
  std::vector<std::int64_t> select_cols = {};   ///< the columns wanted, increasing; empty: all
  std::vector<std::int64_t> exclude_cols = {};  ///< or those not wanted
  std::size_t max_record_bytes = 0;             ///< as in FileOptions
};

/// A column of a CsvDataset: its dtype (float, double, int32, int64 or string), and the value where
/// one is missing; without that it is required.
struct CsvColumn {
  CsvColumn(DType dtype) : default_value(Array(dtype, Shape{0})) {}  // NOLINT: implicit
  template <class T, std::enable_if_t<std::is_convertible_v<T, Tensor>, int> = 0>
  CsvColumn(T value) : default_value(std::move(value)) {}  // NOLINT: implicit: 7, "x", a tensor
  Tensor default_value;
};

/// The records of files of comma-separated values (RFC 4180), one scalar a column.
class TANDEM_EXPORT CsvDataset : public Dataset {
 public:
  CsvDataset(FileNames filenames, const std::vector<CsvColumn>& columns, CsvOptions options = {});
  CsvDataset(const Dataset& filenames, const std::vector<CsvColumn>& columns,
             CsvOptions options = {});
};

struct TFRecordWriterOptions {
  String compression_type = {};
  int compression_level = 6;  ///< from 1 (fast) to 9 (small)
};

/// Writes a TFRecord file. Used by one thread at a time.
class TANDEM_EXPORT TFRecordWriter {
 public:
  /// Makes the file, or empties it.
  explicit TFRecordWriter(const String& filename, TFRecordWriterOptions options = {});
  /// Closes, hiding errors.
  ~TFRecordWriter();
  /// A moved-from object throws FailedPreconditionError when it is written to or flushed.
  TFRecordWriter(TFRecordWriter&&) noexcept;
  TFRecordWriter& operator=(TFRecordWriter&&) noexcept;

  void write(std::string_view record);
  /// Every element, which must be a string tensor, each string a record.
  void write(const Dataset& records);
  void flush();
  void close();

 private:
  struct State;
  State& state() const;
  std::unique_ptr<State> state_;
};

}  // namespace tandem::data
