#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tandem/data/dataset_base.h"
#include "tandem/data/state_archive.h"
#include "tandem/fs/record_file.h"

namespace tandem::data {

/// A file of a snapshot.
struct SnapshotShard {
  std::string path;
  std::string compression;
  std::int64_t count = 0;  ///< of its elements
  ElementSpec spec;

  Dataset read() const;
  /// A dataset that reads the snapshot and, in a variant, can be saved.
  Dataset read_storably() const;
  void visit_state(StateArchive& state);
};
/// What a dataset of `read_storably` reads; null of other ones.
const SnapshotShard* shard_of(const DatasetBase& dataset);

/// Where a snapshot lies, and what it was made of. In `path` there is a folder for each pipeline,
/// named by its fingerprint; it appears whole, with these files:
///
///     00000000.shard …   record files (TFRecord) whose records are StateArchives of one element
///     snapshot.metadata  a StateArchive: the pipeline's description, dtypes and shapes, and each
///                        shard's key and number of elements
class SnapshotFolder {
 public:
  SnapshotFolder(std::string path, std::string description, std::string compression);

  const std::string& path() const { return path_; }
  bool exists() const;
  /// By key. Throws DataLossError if the metadata is damaged.
  std::vector<SnapshotShard> shards() const;

 private:
  friend class SnapshotWriter;
  const std::string parent_;
  const std::string description_;
  const std::string compression_;
  const std::string path_;
};

/// Writes a snapshot into a folder of its own, which `finish` gives its name; without that nothing
/// remains. Of several writers the first to finish wins. Used by one thread at a time.
class SnapshotWriter {
 public:
  static constexpr std::size_t kMaxShards = 1024;

  explicit SnapshotWriter(const SnapshotFolder& target);
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  void add(Element& element, std::int64_t shard);
  void finish();

 private:
  struct Open {
    std::unique_ptr<fs::RecordWriter> file;
    std::int64_t count = 0;
  };
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  void relax(const Element& element);
  void discard() noexcept;

  const SnapshotFolder& target_;
  const std::string folder_;
  std::map<std::int64_t, Open> shards_;
  ElementSpec spec_;  // of all elements so far
  bool finished_ = false;
};

}  // namespace tandem::data
