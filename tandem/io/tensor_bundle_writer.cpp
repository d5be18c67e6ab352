#include <optional>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/atomic_file.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/paths.h"
#include "tandem/io/internal/bundle_format.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/tensor_bundle.h"

namespace tandem::io {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

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

struct TensorBundleWriter::State {
  explicit State(std::string given) : prefix(std::move(given)) {
    make_parent(prefix);
    file.emplace(data_path(prefix, 0, 1));
  }

  void flush() {
    file->append(buffer);
    buffer.clear();
  }
  void append(std::string_view bytes) {
    if (buffer.size() + bytes.size() > kBufferBytes) flush();
    if (bytes.size() > kBufferBytes) {
      file->append(bytes);
    } else {
      buffer += bytes;
    }
    offset += bytes.size();
  }

  proto::BundleEntryProto& new_entry(const std::string& key, const std::string& name) {
    if (!file) throw FailedPreconditionError(cat("The checkpoint ", prefix, " is finished."));
    const auto [found, added] = index.entries.try_emplace(key);
    if (!added) throw InvalidArgumentError(cat("Adding duplicate key: ", name));
    return found->second;
  }

  void write(proto::BundleEntryProto& entry, const Array& value) {
    entry.dtype = static_cast<proto::DataType>(static_cast<int>(value.dtype()));
    encode_shape(value.shape(), entry.shape.make());
    const std::uint64_t begin = offset;
    std::uint32_t crc;
    if (value.dtype() == DType::kString) {
      const EncodedStrings encoded = encode_strings_head(value);
      append(encoded.head);
      for (const std::string& s : value.values<std::string>()) append(s);
      crc = encoded.crc;
    } else {
      const std::string_view bytes(static_cast<const char*>(value.raw_data()), value.num_bytes());
      append(bytes);
      crc = fs::crc32c(bytes);
    }
    entry.offset = static_cast<std::int64_t>(begin);
    entry.size = static_cast<std::int64_t>(offset - begin);
    entry.crc32c = proto::Fixed32{fs::mask_crc32c(crc)};
  }

  std::string prefix;
  std::optional<fs::AtomicFile> file;  // none when finished
  std::string buffer;
  std::uint64_t offset = 0;
  BundleIndex index;
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

TensorBundleWriter::TensorBundleWriter(std::string prefix)
    : state_(std::make_unique<State>(std::move(prefix))) {}
TensorBundleWriter::~TensorBundleWriter() = default;

void TensorBundleWriter::add(const std::string& name, const Array& value) {
  check(name, value);
  state_->write(state_->new_entry(name, name), value);
}

void TensorBundleWriter::add_slice(const std::string& name, const Shape& whole,
                                   const TensorSlice& slice, const Array& value) {
  check(name, value);
  const TensorSlice resolved = resolve(slice, whole);
  if (is_whole(resolved, whole)) return add(name, value);
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
  const auto known = state_->index.entries.find(name);
  if (known != state_->index.entries.end()) {
    const proto::BundleEntryProto& full = known->second;
    if (full.slices.empty()) throw InvalidArgumentError(cat("Adding duplicate key: ", name));
    if (full.dtype != dtype || !(decode_shape(*full.shape) == PartialShape(whole))) {
      throw InvalidArgumentError(
          cat("Tensor '", name, "': its slices are of different dtypes, or of different tensors."));
    }
  }
  proto::BundleEntryProto& part = state_->new_entry(slice_key(name, slice), name);
  proto::BundleEntryProto& full = state_->index.entries[name];
  full.dtype = dtype;
  full.shape.clear();
  encode_shape(whole, full.shape.make());
  full.slices.push_back(encode_slice(slice));
  state_->write(part, value);
}

void TensorBundleWriter::finish() {
  State& s = *state_;
  if (!s.file) throw FailedPreconditionError(cat("The checkpoint ", s.prefix, " is finished."));
  s.flush();
  s.file->finish();
  s.file.reset();
  fs::write_file(index_path(s.prefix), encode_index(s.index));
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
  int shard = 0;
  for (const Part& part : parts) {
    for (int i = 0; i < part.index.num_shards; ++i) {
      const std::string from = data_path(part.prefix, i, part.index.num_shards);
      fs::file_system_of(from).rename(from, data_path(destination, shard++, all.num_shards));
    }
  }
  fs::write_file(index_path(destination), encode_index(all));
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
