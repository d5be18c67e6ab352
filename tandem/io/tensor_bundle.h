#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"

namespace tandem::io {

// A checkpoint of TensorFlow 2: tensors by name in `PREFIX.index` (names, dtypes, shapes, places,
// checksums) and `PREFIX.data-00000-of-00001` (the elements). A large tensor may be stored in
// slices, and the data may be spread over several files, the shards.

/// A box in a tensor: where it begins and how long it is along each axis.
struct TANDEM_EXPORT TensorSlice {
  struct Extent {
    std::int64_t start = 0;
    std::int64_t length = kWhole;
  };
  static constexpr std::int64_t kWhole = -1;
  std::vector<Extent> extents;

  /// "0,2:-", as TensorFlow writes it.
  std::string text() const;
};

/// The shape of a whole tensor and a slice of it: "4 2 0,2:-" is the first two rows of [4, 2].
struct ShapeAndSlice {
  Shape shape;
  TensorSlice slice;
};
/// Throws InvalidArgumentError if the text is none or the slice leaves the shape.
TANDEM_EXPORT ShapeAndSlice parse_shape_and_slice(const std::string& text);

struct TensorBundleWriterOptions {
  /// Files over which the data are spread; threads may fill different ones at a time.
  int num_shards = 1;
};

/// Writes a checkpoint. It appears when `finish` is called: complete, replacing one of the same
/// prefix; without that nothing remains. The index is what makes it appear, and the data of the one
/// that is replaced stay until then: they are in files of another number of shards, so that one
/// written over another has an empty shard more or less. Each shard is used by one thread at a
/// time, all else by one.
///
///     td::io::TensorBundleWriter writer("/tmp/model");
///     writer.add("w", w.array());
///     writer.finish();
class TANDEM_EXPORT TensorBundleWriter {
 public:
  /// Makes the folder of the prefix if the one above it exists. Throws InvalidArgumentError unless
  /// there are from 1 to 10,000 shards.
  explicit TensorBundleWriter(std::string prefix, const TensorBundleWriterOptions& options = {});
  ~TensorBundleWriter();
  TensorBundleWriter(const TensorBundleWriter&) = delete;
  TensorBundleWriter& operator=(const TensorBundleWriter&) = delete;

  /// Throws InvalidArgumentError for an empty name, one that was added already or an Array without
  /// a dtype, and UnimplementedError for resources and variants.
  void add(const std::string& name, const Array& value, int shard = 0);
  /// A part of a tensor of shape `whole`. Parts that overlap are an error when they are read.
  void add_slice(const std::string& name, const Shape& whole, const TensorSlice& slice,
                 const Array& value, int shard = 0);
  /// Returns when the checkpoint would survive a crash.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads a checkpoint: the index at once, tensors when they are asked for. Nothing is believed that
/// the bytes do not justify: damaged or truncated files are a DataLossError. Thread-safe.
class TANDEM_EXPORT TensorBundleReader {
 public:
  /// Throws NotFoundError if there is no index, DataLossError if it is damaged.
  explicit TensorBundleReader(std::string prefix);
  /// A checkpoint of one shard in memory; errors call it `prefix`.
  TensorBundleReader(std::string index, std::string data, std::string prefix);
  ~TensorBundleReader();
  /// A moved-from object throws FailedPreconditionError when it is asked.
  TensorBundleReader(TensorBundleReader&&) noexcept;
  TensorBundleReader& operator=(TensorBundleReader&&) noexcept;

  /// Sorted.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;
  // Throw NotFoundError "Key NAME not found in checkpoint".
  DType dtype(const std::string& name) const;
  Shape shape(const std::string& name) const;
  /// The whole tensor, put together if it is stored in slices.
  Array read(const std::string& name) const;
  /// Several tensors, their bytes read and checked by `threads` threads; 0: one for each processor.
  std::vector<Array> read(const std::vector<std::string>& names, int threads = 0) const;
  /// Reads tensors only to check them: throws what `read` would, without memory for the values.
  void verify(const std::vector<std::string>& names, int threads = 0) const;
  /// Throws InvalidArgumentError if the slice leaves the tensor or is not stored.
  Array read_slice(const std::string& name, const TensorSlice& slice) const;

 private:
  struct State;
  State& state() const;
  std::unique_ptr<State> state_;
};

struct MergeOptions {
  bool delete_old_folders = true;  ///< removes the folders of the parts, where they are empty
  bool allow_missing = false;      ///< passes over parts that do not exist
};
/// Makes one checkpoint of several by renaming their files: each part's data become shards. Throws
/// InvalidArgumentError if a tensor is in two parts (slices of one tensor may be).
TANDEM_EXPORT void merge_tensor_bundles(const std::vector<std::string>& prefixes,
                                        const std::string& destination,
                                        const MergeOptions& options = {});

}  // namespace tandem::io
