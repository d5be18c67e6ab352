#include "tandem/data/stages/snapshot_files.h"

#include <exception>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/data/fusion/fingerprint.h"
#include "tandem/data/sources/files.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/stale_files.h"

namespace tandem::data {
namespace {

constexpr const char* kMetadata = "snapshot.metadata";

std::string shard_name(std::int64_t key) {
  std::string digits = std::to_string(key);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return digits + ".shard";
}

class ShardElements final : public FileElements {
 public:
  ShardElements(const std::string& path, const std::string& compression, std::int64_t count)
      : reader_(open(path, compression)), count_(count) {}

  bool next(Element& out) override {
    try {
      return read(out);
    } catch (const DataLossError&) {
      std::rethrow_exception(with_line(std::current_exception(), what_to_do(reader_.path())));
    }
  }

  void visit_state(StateArchive& state) override {
    visit_place_or_end(state, reader_);
    state.value(seen_);
  }

  std::int64_t place() const override { return static_cast<std::int64_t>(reader_.record_offset()); }

 private:
  static fs::RecordReader open(const std::string& path, const std::string& compression) {
    try {
      return fs::RecordReader(path, {.compression = fs::compression_of(compression)});
    } catch (const NotFoundError&) {
      throw DataLossError(cat(path, ": a shard is missing\n  ", what_to_do(path)));
    }
  }

  static std::string what_to_do(const std::string& path) {
    return cat("in a snapshot. Remove ", path.substr(0, path.find_last_of('/')),
               ", and it will be written again");
  }

  bool read(Element& out) {
    std::string_view record;
    if (!reader_.next(record)) {
      if (seen_ == count_) return false;
      const std::int64_t found = std::exchange(seen_, count_);
      throw DataLossError(cat(reader_.path(), ": the shard has ", found, " elements, but ", count_,
                              " were written"));
    }
    ++seen_;
    try {
      StateArchive archive(record);
      archive.value(out);
      archive.finish();
    } catch (const DataLossError&) {
      throw DataLossError(cat(reader_.path(), ": element ", seen_ - 1,
                              " is damaged: its bytes are not those that were written"));
    }
    return true;
  }

  fs::RecordReader reader_;
  const std::int64_t count_;
  std::int64_t seen_ = 0;
};

struct Shard {
  std::int64_t key = 0;
  std::int64_t count = 0;
};

void visit(StateArchive& archive, TensorSpec& spec) {
  auto dtype = static_cast<std::int64_t>(spec.dtype);
  std::int64_t rank = spec.shape.has_rank() ? spec.shape.rank() : -1;
  std::vector<std::int64_t> dims;
  if (rank >= 0) dims = spec.shape.dims();
  archive.value(dtype);
  archive.value(rank);
  archive.value(dims);
  spec.dtype = static_cast<DType>(dtype);
  spec.shape = rank >= 0 ? PartialShape(std::move(dims)) : PartialShape();
}

void visit(StateArchive& archive, ElementSpec& spec) {
  spec.resize(static_cast<std::size_t>(archive.length(spec.size())));
  for (TensorSpec& component : spec) visit(archive, component);
}

class ShardDataset final : public UnaryDataset {
 public:
  explicit ShardDataset(const SnapshotShard& shard)
      : UnaryDataset(shard.read().base()), shard_(shard) {}
  std::string name() const override { return "SnapshotShard"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return input().iterator(context);
  }
  const SnapshotShard& shard() const { return shard_; }

 private:
  const SnapshotShard shard_;
};

void visit_metadata(StateArchive& archive, std::string& description, ElementSpec& spec,
                    std::vector<Shard>& shards) {
  archive.stage("Snapshot");
  archive.value(description);
  visit(archive, spec);
  shards.resize(static_cast<std::size_t>(archive.length(shards.size())));
  for (Shard& shard : shards) {
    archive.value(shard.key);
    archive.value(shard.count);
  }
}

}  // namespace

SnapshotFolder::SnapshotFolder(std::string path, std::string description, std::string compression)
    : parent_(std::move(path)),
      description_(std::move(description)),
      compression_(std::move(compression)),
      path_(parent_ + "/" + fingerprint(description_ + compression_)) {}

// The folder appears whole, so that one without metadata has lost it.
bool SnapshotFolder::exists() const {
  if (fs::exists(path_ + "/" + kMetadata)) return true;
  // A store shows a folder's files one by one, the metadata last.
  if (!fs::file_system_of(path_).has_directories()) return false;
  // Asked again: another writer may have finished meanwhile.
  if (fs::exists(path_) && !fs::file_system_of(path_).list(path_).empty() &&
      !fs::exists(path_ + "/" + kMetadata)) {
    throw DataLossError(cat(path_, ": the snapshot is damaged, for it has no ", kMetadata,
                            ". Remove this folder, and it will be written again."));
  }
  return false;
}

std::vector<SnapshotShard> SnapshotFolder::shards() const {
  const std::string name = path_ + "/" + kMetadata;
  std::vector<Shard> shards;
  ElementSpec spec;
  std::string described;
  try {
    StateArchive archive(fs::read_file(name));
    visit_metadata(archive, described, spec, shards);
    archive.finish();
  } catch (const DataLossError&) {
    throw DataLossError(cat(name,
                            " is damaged: its bytes are not those that were written. Remove its "
                            "folder, and the snapshot will be written again."));
  }
  if (described != description_) {
    throw FailedPreconditionError(cat(path_, " has the snapshot of another pipeline, ", described,
                                      ". Give this one a folder of its own."));
  }
  std::vector<SnapshotShard> all;
  for (const Shard& shard : shards) {
    all.push_back({path_ + "/" + shard_name(shard.key), compression_, shard.count, spec});
  }
  return all;
}

Dataset SnapshotShard::read() const {
  return read_files(std::vector<std::string>{path},
                    {"Snapshot",
                     [compression = compression, count = count](const std::string& file) {
                       return std::make_unique<ShardElements>(file, compression, count);
                     },
                     spec, 0});
}

Dataset SnapshotShard::read_storably() const { return make_dataset<ShardDataset>(*this); }

void SnapshotShard::visit_state(StateArchive& state) {
  state.value(path);
  state.value(compression);
  state.value(count);
  visit(state, spec);
}

const SnapshotShard* shard_of(const DatasetBase& dataset) {
  const auto* shard = dynamic_cast<const ShardDataset*>(&dataset);
  return shard ? &shard->shard() : nullptr;
}

SnapshotWriter::SnapshotWriter(const SnapshotFolder& target)
    : target_(target), folder_(fs::unfinished_name(target.path())) {
  fs::file_system_of(folder_).make_directories(folder_);
  fs::remove_stale_files(target_.path());
}

SnapshotWriter::~SnapshotWriter() {
  if (!finished_) discard();
}

void SnapshotWriter::discard() noexcept {
  shards_.clear();
  try {
    fs::FileSystem& files = fs::file_system_of(folder_);
    for (const std::string& name : files.list(folder_)) files.remove(file(name));
    files.remove(folder_);
  } catch (const Error&) {
    // What is left over has a name that nothing reads.
  }
}

void SnapshotWriter::add(Element& element, std::int64_t shard) {
  auto at = shards_.find(shard);
  if (at == shards_.end()) {
    if (shard < 0 || shards_.size() == kMaxShards) {
      throw InvalidArgumentError(
          cat("A snapshot has at most ", kMaxShards,
              " shards, whose numbers are not negative; shard_func returned ", shard, "."));
    }
    auto writer = std::make_unique<fs::RecordWriter>(
        file(shard_name(shard)),
        fs::RecordWriterOptions{.compression = fs::compression_of(target_.compression_),
                                .durable = true});
    at = shards_.emplace(shard, Open{std::move(writer), 0}).first;
  }
  relax(element);
  StateArchive archive;
  archive.value(element);
  at->second.file->write(archive.bytes());
  ++at->second.count;
}

void SnapshotWriter::relax(const Element& element) {
  const bool first = shards_.size() == 1 && shards_.begin()->second.count == 0;
  for (std::size_t i = 0; i < element.size(); ++i) {
    const PartialShape shape = element[i].array().shape();
    if (first) {
      spec_.push_back({element[i].dtype(), shape});
    } else if (i < spec_.size()) {
      spec_[i].shape = spec_[i].shape.relax(shape);
    }
  }
}

void SnapshotWriter::finish() {
  std::vector<Shard> shards;
  for (auto& [key, shard] : shards_) {
    shard.file->close();
    shards.push_back({key, shard.count});
  }
  StateArchive archive;
  std::string description = target_.description_;
  visit_metadata(archive, description, spec_, shards);
  fs::write_file(file(kMetadata), archive.bytes());
  fs::FileSystem& files = fs::file_system_of(folder_);
  try {
    if (files.has_directories()) {
      files.rename(folder_, target_.path());
    } else {
      // The metadata are what makes it a snapshot. What an interrupted writer left is replaced.
      for (const auto& [key, count] : shards) {
        files.rename(file(shard_name(key)), target_.path() + "/" + shard_name(key));
      }
      files.rename(file(kMetadata), target_.path() + "/" + kMetadata);
    }
    finished_ = true;
  } catch (const Error&) {
    if (!target_.exists()) throw;
    // Another writer was first.
  }
}

}  // namespace tandem::data
