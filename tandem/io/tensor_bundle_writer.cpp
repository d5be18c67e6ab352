#include <algorithm>
#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/paths.h"
#include "tandem/io/internal/bundle_format.h"
#include "tandem/io/internal/on_threads.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/tensor_bundle.h"

namespace tandem::io {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kPieceBytes = std::size_t{2} << 20;
constexpr int kMaxShards = 10000;

// Makes the last folder of a path, as TensorFlow does: not those above it.
void make_parent(const std::string& path) {
  const std::string folder = fs::parent_path(path);
  if (!fs::file_system_of(path).has_directories()) return;
  if (folder.empty() || fs::exists(folder)) return;
  const std::string above = fs::parent_path(folder);
  if (!above.empty() && !fs::exists(above))
    throw NotFoundError(folder + "; No such file or directory");
  fs::file_system_of(folder).make_directories(folder);
}

bool is_whole(const TensorSlice& resolved, const Shape& shape) {
  for (int i = 0; i < shape.rank(); ++i) {
    if (resolved.extents[static_cast<std::size_t>(i)].length != shape[i]) return false;
  }
  return true;
}

}  // namespace

namespace {

// One data file being written.
class Shard {
 public:
  explicit Shard(const std::string& path) : file_(path) {}

  std::uint64_t offset() const { return offset_; }
  void append(std::string_view bytes) {
    if (buffer_.size() + bytes.size() > kBufferBytes) flush();
    if (bytes.size() > kBufferBytes) {
      file_.append(bytes);
    } else {
      buffer_ += bytes;
    }
    offset_ += bytes.size();
  }
  void seal() {
    flush();
    file_.seal();
  }
  void finish() { file_.finish(); }

 private:
  void flush() {
    file_.append(buffer_);
    buffer_.clear();
  }

  fs::AtomicFile file_;
  std::string buffer_;
  std::uint64_t offset_ = 0;
};

// How many shards there are at a prefix now; 0: nothing that could be read.
int shards_there(const std::string& prefix) {
  try {
    return fs::exists(index_path(prefix)) ? read_index(prefix).num_shards : 0;
  } catch (const Error&) {
    return 0;
  }
}

// The files of the checkpoint that was replaced, which nothing refers to any more.
void remove_data(const std::string& prefix, int num_shards) {
  for (int i = 0; i < num_shards; ++i) {
    const std::string path = data_path(prefix, i, num_shards);
    try {
      if (fs::exists(path)) fs::file_system_of(path).remove(path);
    } catch (const Error&) {
      // It takes room and does no other harm.
    }
  }
}

}  // namespace

struct TensorBundleWriter::State {
  State(std::string given, int wanted) : prefix(std::move(given)), replaced(shards_there(prefix)) {
    if (wanted < 1 || wanted > kMaxShards) {
      throw InvalidArgumentError(
          cat("A checkpoint has from 1 to ", kMaxShards, " shards, not ", wanted, "."));
    }
    make_parent(prefix);
    index.num_shards = wanted == replaced ? wanted + 1 : wanted;
    for (int i = 0; i < index.num_shards; ++i)
      shards.push_back(std::make_unique<Shard>(data_path(prefix, i, index.num_shards)));
  }

  Shard& shard(int number) const {
    if (shards.empty())
      throw FailedPreconditionError(cat("The checkpoint ", prefix, " is finished."));
    if (number < 0 || number >= static_cast<int>(shards.size())) {
      throw InvalidArgumentError(cat("The checkpoint ", prefix, " has ", shards.size(),
                                     " shards, and no number ", number));
    }
    return *shards[static_cast<std::size_t>(number)];
  }

  proto::BundleEntryProto& new_entry(const std::string& key, const std::string& name)
      TANDEM_REQUIRES(mutex) {
    const auto [found, added] = index.entries.try_emplace(key);
    if (!added) throw InvalidArgumentError(cat("Adding duplicate key: ", name));
    return found->second;
  }

  // Entries of a map stay where they are, and this one is the caller's alone.
  void write(proto::BundleEntryProto& entry, const Array& value, int number) {
    Shard& to = shard(number);
    entry.dtype = static_cast<proto::DataType>(static_cast<int>(value.dtype()));
    encode_shape(value.shape(), entry.shape.make());
    const std::uint64_t begin = to.offset();
    std::uint32_t crc = 0;
    if (value.dtype() == DType::kString) {
      const EncodedStrings encoded = encode_strings_head(value);
      to.append(encoded.head);
      for (const std::string& s : value.values<std::string>()) to.append(s);
      crc = encoded.crc;
    } else {
      std::string_view bytes(static_cast<const char*>(value.raw_data()), value.num_bytes());
      // A piece that was summed is still in the cache when it is copied.
      while (!bytes.empty()) {
        const std::string_view piece = bytes.substr(0, kPieceBytes);
        crc = fs::crc32c(piece, crc);
        to.append(piece);
        bytes.remove_prefix(piece.size());
      }
    }
    entry.shard_id = number;
    entry.offset = static_cast<std::int64_t>(begin);
    entry.size = static_cast<std::int64_t>(to.offset() - begin);
    entry.crc32c = proto::Fixed32{fs::mask_crc32c(crc)};
  }

  const std::string prefix;
  const int replaced;
  std::vector<std::unique_ptr<Shard>> shards;  // none when finished
  Mutex mutex;
  BundleIndex index;  // `mutex` guards its entries
};

namespace {

void check(const std::string& name, const Array& value) {
  if (name.empty()) throw InvalidArgumentError("A tensor in a checkpoint needs a name.");
  if (!value.valid()) {
    throw InvalidArgumentError(
        cat("Tensor '", name, "': the array is empty: it was default-constructed, or moved from. ",
            "Give one with a dtype and a shape."));
  }
  if (value.dtype() == DType::kResource || value.dtype() == DType::kVariant) {
    throw UnimplementedError(
        cat("Tensor '", name, "': values of dtype ", value.dtype(), " can't be saved."));
  }
}

}  // namespace

TensorBundleWriter::TensorBundleWriter(std::string prefix, const TensorBundleWriterOptions& options)
    : state_(std::make_unique<State>(std::move(prefix), options.num_shards)) {}
TensorBundleWriter::~TensorBundleWriter() = default;

void TensorBundleWriter::add(const std::string& name, const Array& value, int shard) {
  check(name, value);
  static_cast<void>(state_->shard(shard));
  proto::BundleEntryProto* entry = nullptr;
  {
    const MutexLock lock(state_->mutex);
    entry = &state_->new_entry(name, name);
  }
  state_->write(*entry, value, shard);
}

void TensorBundleWriter::add_slice(const std::string& name, const Shape& whole,
                                   const TensorSlice& slice, const Array& value, int shard) {
  check(name, value);
  static_cast<void>(state_->shard(shard));
  const TensorSlice resolved = resolve(slice, whole);
  if (is_whole(resolved, whole)) return add(name, value, shard);
  bool fits = value.rank() == whole.rank();
  for (int i = 0; fits && i < whole.rank(); ++i)
    fits = value.shape()[i] == resolved.extents[static_cast<std::size_t>(i)].length;
  if (!fits) {
    throw InvalidArgumentError(
        cat("Slice in shape_and_slice specification does not match the shape of the tensor to "
            "save: ",
            whole, " ", slice.text(), ", tensor: ", value.shape()));
  }
  const auto dtype = static_cast<proto::DataType>(static_cast<int>(value.dtype()));
  proto::BundleEntryProto* part = nullptr;
  {
    const MutexLock lock(state_->mutex);
    const auto known = state_->index.entries.find(name);
    if (known != state_->index.entries.end()) {
      const proto::BundleEntryProto& full = known->second;
      if (full.slices.empty()) throw InvalidArgumentError(cat("Adding duplicate key: ", name));
      if (full.dtype != dtype || !(decode_shape(*full.shape) == PartialShape(whole))) {
        throw InvalidArgumentError(cat("Tensor '", name,
                                       "': its slices are of different dtypes, or of different "
                                       "tensors."));
      }
    }
    part = &state_->new_entry(slice_key(name, slice), name);
    proto::BundleEntryProto& full = state_->index.entries[name];
    full.dtype = dtype;
    full.shape.clear();
    encode_shape(whole, full.shape.make());
    full.slices.push_back(encode_slice(slice));
  }
  state_->write(*part, value, shard);
}

void TensorBundleWriter::finish() {
  State& s = *state_;
  static_cast<void>(s.shard(0));
  on_threads(s.shards.size(), s.index.num_shards, [&](std::size_t i) { s.shards[i]->seal(); });
  for (const auto& shard : s.shards) shard->finish();
  fs::write_file(index_path(s.prefix), encode_index(s.index));
  s.shards.clear();
  if (s.replaced != 0) remove_data(s.prefix, s.replaced);
}

void merge_tensor_bundles(const std::vector<std::string>& prefixes, const std::string& destination,
                          const MergeOptions& options) {
  struct Part {
    std::string prefix;
    BundleIndex index;
  };
  std::vector<Part> parts;
  BundleIndex all;
  all.num_shards = 0;
  for (const std::string& prefix : prefixes) {
    if (!fs::exists(index_path(prefix))) {
      if (options.allow_missing) continue;
      throw InvalidArgumentError(
          cat("allow_missing_files was set to false and ", prefix, " did not exist."));
    }
    parts.push_back({prefix, read_index(prefix)});
    const BundleIndex& index = parts.back().index;
    if (index.num_shards > 99999 - all.num_shards)
      throw InvalidArgumentError("The parts of the checkpoint have too many shards together.");
    if (parts.size() > 1 && index.big_endian != all.big_endian) {
      throw InvalidArgumentError(
          cat("Merging of parts of different byte order: ", prefix, " differs."));
    }
    all.big_endian = index.big_endian;
    for (const auto& [key, entry] : index.entries) {
      const auto [found, added] = all.entries.try_emplace(key, entry);
      proto::BundleEntryProto& merged = found->second;
      if (added) {
        merged.shard_id += all.num_shards;
        continue;
      }
      if (merged.slices.empty() || entry.slices.empty() || merged.dtype != entry.dtype ||
          !(decode_shape(*merged.shape) == decode_shape(*entry.shape))) {
        throw InvalidArgumentError(
            cat("Duplicate tensor keyed by ", key, " encountered, when merging prefix: ", prefix));
      }
      merged.slices.insert(merged.slices.end(), entry.slices.begin(), entry.slices.end());
    }
    all.num_shards += index.num_shards;
  }
  if (parts.empty()) {
    throw InvalidArgumentError("At least one prefix checkpoint file must exist, but none existed.");
  }
  make_parent(destination);
  // As in TensorBundleWriter: a checkpoint that is replaced keeps its files until the new index is
  // there, unless it is one of the parts.
  const bool in_place = std::any_of(parts.begin(), parts.end(),
                                    [&](const Part& part) { return part.prefix == destination; });
  const int replaced = in_place ? 0 : shards_there(destination);
  const bool padded = replaced == all.num_shards;
  if (padded) {
    fs::AtomicFile(data_path(destination, all.num_shards, all.num_shards + 1)).finish();
    ++all.num_shards;
  }
  int shard = 0;
  for (const Part& part : parts) {
    for (int i = 0; i < part.index.num_shards; ++i) {
      const std::string from = data_path(part.prefix, i, part.index.num_shards);
      fs::file_system_of(from).rename(from, data_path(destination, shard++, all.num_shards));
    }
  }
  fs::file_system_of(destination).sync_directory(fs::parent_path(destination));
  fs::write_file(index_path(destination), encode_index(all));
  if (replaced != 0) remove_data(destination, replaced);
  for (const Part& part : parts) {
    if (part.prefix == destination) continue;
    const std::string index = index_path(part.prefix);
    fs::file_system_of(index).remove(index);
    if (!options.delete_old_folders) continue;
    const std::string folder = fs::parent_path(part.prefix);
    if (folder == fs::parent_path(destination)) continue;
    try {
      fs::file_system_of(folder).remove(folder);
    } catch (const Error&) {
      // Another part's, or something else lies there: the folder stays.
    }
  }
}

}  // namespace tandem::io
