#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/internal/streaming_copy.h"
#include "tandem/core/machine.h"
#include "tandem/fs/crc32c.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/file_view.h"
#include "tandem/io/internal/bundle_format.h"
#include "tandem/io/internal/on_threads.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/tensor_bundle.h"

namespace tandem::io {
namespace {

struct Shard {
  std::unique_ptr<fs::ReadableFile> file;
  std::uint64_t size = 0;
  std::unique_ptr<fs::FileView> view = {};  ///< none where it does not pay
};

class MemoryFile final : public fs::ReadableFile {
 public:
  explicit MemoryFile(std::string bytes) : bytes_(std::move(bytes)) {}
  std::size_t read(std::uint64_t offset, std::span<char> out) const override {
    if (offset >= bytes_.size()) return 0;
    const std::size_t size = std::min(out.size(), bytes_.size() - static_cast<std::size_t>(offset));
    std::memcpy(out.data(), bytes_.data() + offset, size);
    return size;
  }

 private:
  std::string bytes_;
};

void swap_bytes(Array& array) {
  auto* data = static_cast<char*>(array.raw_data());
  std::size_t size = dtype_size(array.dtype());
  if (is_complex(array.dtype())) size /= 2;
  for (std::size_t i = 0; i + size <= array.num_bytes(); i += size)
    std::reverse(data + i, data + i + size);
}

void copy_elements(const Array& from, std::int64_t from_at, Array& to, std::int64_t to_at,
                   std::int64_t count) {
  if (from.dtype() == DType::kString) {
    std::copy_n(from.data<std::string>() + from_at, count, to.data<std::string>() + to_at);
    return;
  }
  const auto size = static_cast<std::int64_t>(dtype_size(from.dtype()));
  std::memcpy(static_cast<char*>(to.raw_data()) + to_at * size,
              static_cast<const char*>(from.raw_data()) + from_at * size,
              static_cast<std::size_t>(count * size));
}

using Extents = std::vector<TensorSlice::Extent>;

Shape shape_of(const Extents& box) {
  std::vector<std::int64_t> dims;
  for (const auto& extent : box) dims.push_back(extent.length);
  return Shape(dims);
}

// What lies in both; lengths are 0 where nothing does.
Extents intersection(const Extents& a, const Extents& b) {
  Extents both;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::int64_t start = std::max(a[i].start, b[i].start);
    const std::int64_t end = std::min(a[i].start + a[i].length, b[i].start + b[i].length);
    both.push_back({start, std::max<std::int64_t>(end - start, 0)});
  }
  return both;
}

// Copies the elements of `both` from an array that holds the box `from_box` to one that holds
// `to_box`, and marks them in `filled` (if given); returns how many were new there.
std::int64_t copy_box(const Array& from, const Extents& from_box, Array& to, const Extents& to_box,
                      const Extents& both, std::vector<bool>* filled) {
  const std::int64_t count = shape_of(both).num_elements();
  if (count == 0) return 0;
  const std::size_t rank = both.size();
  const std::int64_t run = rank == 0 ? 1 : both[rank - 1].length;
  Extents at = both;  // only the starts are used
  std::int64_t fresh = 0;
  for (std::int64_t done = 0; done < count; done += run) {
    std::int64_t from_at = 0, to_at = 0;
    for (std::size_t i = 0; i < rank; ++i) {
      from_at = from_at * from_box[i].length + at[i].start - from_box[i].start;
      to_at = to_at * to_box[i].length + at[i].start - to_box[i].start;
    }
    copy_elements(from, from_at, to, to_at, run);
    for (std::int64_t i = 0; filled != nullptr && i < run; ++i) {
      const auto place = static_cast<std::size_t>(to_at + i);
      fresh += (*filled)[place] ? 0 : 1;
      (*filled)[place] = true;
    }
    for (std::size_t i = rank < 2 ? 0 : rank - 1; i-- > 0;) {
      if (++at[i].start < both[i].start + both[i].length) break;
      at[i].start = both[i].start;
    }
  }
  return fresh;
}

struct Place {
  DType dtype;
  Shape shape;
};

// A part of a tensor's bytes, which one thread reads and sums.
struct Piece {
  const Shard* shard;
  std::uint64_t offset;
  char* out;  ///< null: the bytes are only summed
  std::size_t size;
  std::uint32_t crc = 0;
  std::size_t got = 0;
};

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
// What was read is summed while it is in the cache.
constexpr std::size_t kStepBytes = std::size_t{256} << 10;
// Where more is read at once, it leaves the caches before it is used.
constexpr std::size_t kCachedBytes = std::size_t{32} << 20;
// Mapping a file costs as much as reading so many bytes of it.
constexpr std::size_t kMinViewedBytes = std::size_t{1} << 20;

// Looks at the bytes where the system has them, which saves one copy: of all where they are only
// summed.
void view_piece(const fs::FileView& view, Piece& piece, bool cached) {
  const char* begin = nullptr;
  while (piece.got < piece.size) {
    const std::string_view step =
        view.bytes(piece.offset + piece.got, std::min(kStepBytes, piece.size - piece.got));
    if (step.empty()) break;
    if (!begin) begin = step.data();
    if (piece.out) {
      char* const out = piece.out + piece.got;
      if (cached) {
        std::memcpy(out, step.data(), step.size());
      } else {
        internal::streaming_copy(out, step.data(), step.size());
      }
    }
    piece.crc = fs::crc32c(step, piece.crc);
    piece.got += step.size();
  }
  if (begin) view.release({begin, piece.got});
  internal::finish_streaming_copies();
}

void read_piece(Piece& piece, bool cached) {
  if (piece.shard->view) view_piece(*piece.shard->view, piece, cached);
  std::vector<char> summed(piece.out ? 0 : std::min(kStepBytes, piece.size - piece.got));
  while (piece.got < piece.size) {
    const std::span<char> step(piece.out ? piece.out + piece.got : summed.data(),
                               std::min(kStepBytes, piece.size - piece.got));
    const std::size_t got = piece.shard->file->read(piece.offset + piece.got, step);
    piece.crc = fs::crc32c({step.data(), got}, piece.crc);
    piece.got += got;
    if (got < step.size()) return;
  }
}

}  // namespace

struct TensorBundleReader::State {
  std::string prefix;
  BundleIndex index;
  std::mutex mutex;
  std::map<int, Shard> shards;  // those that were opened

  const proto::BundleEntryProto& entry(const std::string& key, const std::string& name) const {
    const auto found = index.entries.find(key);
    if (key.empty() || found == index.entries.end())
      throw NotFoundError(cat("Key ", name, " not found in checkpoint"));
    return found->second;
  }

  Place place(const proto::BundleEntryProto& entry, const std::string& name) const {
    const std::optional<DType> dtype = dtype_of_number(entry.dtype);
    if (!dtype || is_ref(*dtype)) {
      throw UnimplementedError(cat("Tensor '", name, "' of checkpoint ", prefix, " has dtype ",
                                   dtype_number_name(entry.dtype), ", which this build lacks."));
    }
    try {
      const PartialShape shape = decode_shape(*entry.shape);
      if (!shape.is_fully_known()) throw InvalidArgumentError("A shape is not known.");
      return {*dtype, shape.to_shape()};
    } catch (const InvalidArgumentError& error) {
      throw DataLossError(
          cat("Tensor '", name, "' of checkpoint ", prefix, " is damaged: ", error.what()));
    }
  }

  const Shard& shard(const proto::BundleEntryProto& entry, const std::string& name) {
    const int id = entry.shard_id;
    const std::lock_guard lock(mutex);
    const auto found = shards.find(id);
    if (found != shards.end()) return found->second;
    if (id < 0 || id >= index.num_shards) {
      throw DataLossError(
          cat("The index of checkpoint ", prefix, " is damaged: there is no shard ", id, "."));
    }
    const std::string path = data_path(prefix, id, index.num_shards);
    fs::FileSystem& files = fs::file_system_of(path);
    Shard shard;
    try {
      shard.file = files.open(path);
    } catch (const NotFoundError& error) {
      throw NotFoundError(cat(error.what(), " It is the shard of checkpoint ", prefix,
                              " that holds tensor '", name, "'."));
    }
    const std::optional<std::uint64_t> known = shard.file->known_size();
    shard.size = known ? *known : files.stat(path).size;
    if (shard.size >= kMinViewedBytes) shard.view = std::make_unique<fs::FileView>(path);
    return shards.emplace(id, std::move(shard)).first->second;
  }

  DataLossError lost(const proto::BundleEntryProto& entry, const std::string& name,
                     const std::string& why) const {
    return DataLossError(cat("TensorBundle at ", prefix, " shard ", entry.shard_id, " (",
                             entry.size, " bytes): ", why, why.ends_with('.') ? "" : ".",
                             " Tensor '", name, "', file ",
                             data_path(prefix, entry.shard_id, index.num_shards), "."));
  }

  /// The stored bytes of one entry as an array.
  Array read(const proto::BundleEntryProto& entry, const std::string& name) {
    const Request request{&entry, &name};
    return std::move(read(std::span(&request, 1), 1).front());
  }

  struct Request {
    const proto::BundleEntryProto* entry;
    const std::string* name;
  };
  /// With arrays of the results, or only checked: then those of strings alone have content.
  std::vector<Array> read(std::span<const Request> requests, int threads, bool keep = true) {
    std::vector<Array> arrays(requests.size());
    std::vector<std::size_t> ends(requests.size());  // behind the tensor's pieces
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      prepare(requests[i], keep, arrays[i], pieces);
      ends[i] = pieces.size();
    }
    std::size_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.size;
    on_threads(pieces.size(), threads,
               [&](std::size_t i) { read_piece(pieces[i], bytes <= kCachedBytes); });
    for (std::size_t i = 0, at = 0; i < requests.size(); ++i) {
      if (arrays[i].dtype() == DType::kString) continue;
      std::uint32_t crc = 0;
      for (; at < ends[i]; ++at) {
        const Piece& piece = pieces[at];
        if (piece.got != piece.size)
          throw lost(*requests[i].entry, *requests[i].name, "Read less bytes than requested");
        crc = fs::crc32c_joined(crc, piece.crc, piece.got);
      }
      check(requests[i], crc);
      if (keep) convert(arrays[i]);
    }
    return arrays;
  }

  // Reads strings at once; of numbers makes the memory (if they are kept), and what is to be read.
  void prepare(const Request& request, bool keep, Array& array, std::vector<Piece>& pieces) {
    const proto::BundleEntryProto& entry = *request.entry;
    const std::string& name = *request.name;
    const auto [dtype, shape] = place(entry, name);
    if (dtype == DType::kResource || dtype == DType::kVariant) {
      throw UnimplementedError(cat("Tensor '", name, "' of checkpoint ", prefix,
                                   ": values of dtype ", dtype, " can't be read."));
    }
    const Shard& from = shard(entry, name);
    const auto offset = static_cast<std::uint64_t>(entry.offset);
    const auto size = static_cast<std::uint64_t>(entry.size);
    if (entry.offset < 0 || entry.size < 0 || offset > from.size || size > from.size - offset)
      throw lost(entry, name, "It reaches beyond the end of the file");
    try {
      if (dtype == DType::kString) {
        std::string bytes(static_cast<std::size_t>(size), '\0');
        if (from.file->read(offset, bytes) != size)
          throw DataLossError("Read less bytes than requested");
        array = decode_strings(bytes, shape,
                               fs::unmask_crc32c(static_cast<std::uint32_t>(entry.crc32c)));
        return;
      }
      const std::int64_t expected =
          checked_multiply(shape.num_elements(), static_cast<std::int64_t>(dtype_size(dtype)));
      if (entry.size != expected) {
        throw DataLossError(cat("Invalid size in bundle entry: key ", name, "; stored size ",
                                entry.size, "; expected size ", expected));
      }
      if (keep) array = Array(dtype, shape);
      char* out = keep ? static_cast<char*>(array.raw_data()) : nullptr;
      for (std::size_t at = 0; at < size; at += kPieceBytes) {
        pieces.push_back({&from, offset + at, out ? out + at : nullptr,
                          std::min(kPieceBytes, static_cast<std::size_t>(size) - at)});
      }
    } catch (const DataLossError& error) {
      throw lost(entry, name, error.what());
    } catch (const InvalidArgumentError& error) {
      throw lost(entry, name, error.what());
    }
  }

  void check(const Request& request, std::uint32_t crc) const {
    const std::uint32_t stored =
        fs::unmask_crc32c(static_cast<std::uint32_t>(request.entry->crc32c));
    try {
      if (crc != stored) throw_checksum(stored, crc);
    } catch (const DataLossError& error) {
      throw lost(*request.entry, *request.name, error.what());
    }
  }

  // Into this machine's form.
  void convert(Array& array) const {
    if (index.big_endian) swap_bytes(array);
    if (array.dtype() == DType::kBool) {  // other bytes than 0 and 1 are no bool
      auto* bytes = static_cast<char*>(array.raw_data());
      for (std::size_t i = 0; i < array.num_bytes(); ++i) bytes[i] = bytes[i] != 0;
    }
  }

  /// A box of a tensor that is stored in slices.
  Array assemble(const proto::BundleEntryProto& full, const std::string& name, const Place& whole,
                 const TensorSlice& slice) {
    const auto insufficient = [&]() -> InvalidArgumentError {
      return InvalidArgumentError(cat("Does not have sufficient slices for partitioned tensor ",
                                      name, " to restore in slice_spec: ", slice.text()));
    };
    struct Part {
      const proto::BundleEntryProto* entry;
      Extents box;
      Extents both;
    };
    const Extents wanted = resolve(slice, whole.shape).extents;
    std::vector<Part> parts;
    std::uint64_t stored = 0, files = 0;
    std::vector<int> counted;
    const std::int64_t count = shape_of(wanted).num_elements();
    std::int64_t found = 0;
    for (const proto::TensorSliceProto& proto : full.slices) {
      const TensorSlice part = decode_slice(proto);
      Extents box;
      try {
        box = resolve(part, whole.shape).extents;
      } catch (const InvalidArgumentError& error) {
        throw DataLossError(cat("The index of checkpoint ", prefix, " is damaged: ", error.what()));
      }
      Extents both = intersection(box, wanted);
      const std::int64_t size = shape_of(both).num_elements();
      if (size == 0) continue;
      found += size;
      const proto::BundleEntryProto& stored_part = entry(slice_key(name, part), name);
      if (std::find(counted.begin(), counted.end(), stored_part.shard_id) == counted.end()) {
        counted.push_back(stored_part.shard_id);
        files += shard(stored_part, name).size;
      }
      stored += static_cast<std::uint64_t>(std::max<std::int64_t>(stored_part.size, 0));
      if (stored > files || found > count) {
        throw DataLossError(cat("The index of checkpoint ", prefix,
                                " is damaged: the slices of tensor '", name, "' overlap."));
      }
      parts.push_back({&stored_part, std::move(box), std::move(both)});
    }
    if (found < count) throw insufficient();
    // Parts that do not fill what is wanted end above: each element lies in some file.
    const std::uint64_t least = whole.dtype == DType::kString ? 1 : dtype_size(whole.dtype);
    if (static_cast<std::uint64_t>(count) > files / least) throw insufficient();
    Array result(whole.dtype, shape_of(wanted));
    std::vector<bool> filled(static_cast<std::size_t>(count));
    std::int64_t fresh = 0;
    for (const Part& part : parts) {
      const Array value = read(*part.entry, name);
      if (value.dtype() != whole.dtype || !(value.shape() == shape_of(part.box))) {
        throw DataLossError(cat("The index of checkpoint ", prefix, " is damaged: a slice of '",
                                name, "' is ", value.dtype(), value.shape(), "."));
      }
      fresh += copy_box(value, part.box, result, wanted, part.both, &filled);
    }
    if (fresh < count) throw insufficient();
    return result;
  }
};

TensorBundleReader::TensorBundleReader(std::string prefix) : state_(std::make_unique<State>()) {
  state_->prefix = std::move(prefix);
  state_->index = read_index(state_->prefix);
}

TensorBundleReader::TensorBundleReader(std::string index, std::string data, std::string prefix)
    : state_(std::make_unique<State>()) {
  state_->prefix = std::move(prefix);
  state_->index = decode_index(index, index_path(state_->prefix));
  const std::uint64_t size = data.size();
  state_->shards.emplace(0, Shard{std::make_unique<MemoryFile>(std::move(data)), size});
  if (state_->index.num_shards != 1)
    throw InvalidArgumentError(cat("Checkpoint ", state_->prefix, " has more than one shard."));
}
TensorBundleReader::~TensorBundleReader() = default;
TensorBundleReader::TensorBundleReader(TensorBundleReader&&) noexcept = default;
TensorBundleReader& TensorBundleReader::operator=(TensorBundleReader&&) noexcept = default;

TensorBundleReader::State& TensorBundleReader::state() const {
  if (!state_) throw FailedPreconditionError("This TensorBundleReader was moved to another.");
  return *state_;
}

std::vector<std::string> TensorBundleReader::names() const {
  std::vector<std::string> names;
  for (const auto& [key, entry] : state().index.entries) {
    if (!is_slice_key(key)) names.push_back(key);
  }
  return names;
}
bool TensorBundleReader::contains(const std::string& name) const {
  return !is_slice_key(name) && state().index.entries.count(name) != 0;
}
DType TensorBundleReader::dtype(const std::string& name) const {
  return state().place(state().entry(name, name), name).dtype;
}
Shape TensorBundleReader::shape(const std::string& name) const {
  return state().place(state().entry(name, name), name).shape;
}

Array TensorBundleReader::read(const std::string& name) const {
  const proto::BundleEntryProto& entry = state().entry(name, name);
  if (entry.slices.empty()) return state().read(entry, name);
  const Place whole = state().place(entry, name);
  TensorSlice all;
  all.extents.resize(static_cast<std::size_t>(whole.shape.rank()));
  return state().assemble(entry, name, whole, all);
}

std::vector<Array> TensorBundleReader::read(const std::vector<std::string>& names,
                                            int threads) const {
  std::vector<State::Request> whole;
  std::vector<std::size_t> places;
  std::vector<Array> arrays(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const proto::BundleEntryProto& entry = state().entry(names[i], names[i]);
    if (entry.slices.empty()) {
      whole.push_back({&entry, &names[i]});
      places.push_back(i);
    } else {
      arrays[i] = read(names[i]);
    }
  }
  std::vector<Array> read =
      state().read(whole, threads > 0 ? threads : machine_limits().processors);
  for (std::size_t i = 0; i < read.size(); ++i) arrays[places[i]] = std::move(read[i]);
  return arrays;
}

void TensorBundleReader::verify(const std::vector<std::string>& names, int threads) const {
  std::vector<State::Request> whole;
  for (const std::string& name : names) {
    const proto::BundleEntryProto& entry = state().entry(name, name);
    if (entry.slices.empty()) {
      whole.push_back({&entry, &name});
    } else {
      read(name);
    }
  }
  state().read(whole, threads > 0 ? threads : machine_limits().processors, false);
}

Array TensorBundleReader::read_slice(const std::string& name, const TensorSlice& slice) const {
  const proto::BundleEntryProto& entry = state().entry(name, name);
  const Place whole = state().place(entry, name);
  if (!entry.slices.empty()) return state().assemble(entry, name, whole, slice);
  const Extents wanted = resolve(slice, whole.shape).extents;
  const Array value = state().read(entry, name);
  Array result(whole.dtype, shape_of(wanted));
  Extents all;
  for (const std::int64_t size : whole.shape.dims()) all.push_back({0, size});
  copy_box(value, all, result, wanted, wanted, nullptr);
  return result;
}

}  // namespace tandem::io
