#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/dtype.h"
#include "tandem/core/shape.h"
#include "tandem/io/proto/messages.h"
#include "tandem/io/tensor_bundle.h"

/// What writing, reading and merging of checkpoints share: names of files and the index.
namespace tandem::io {

std::string index_path(const std::string& prefix);
/// "PREFIX-00001-of-00002"
std::string sharded_name(const std::string& prefix, int shard, int num_shards);
std::string data_path(const std::string& prefix, int shard, int num_shards);

/// The index of a checkpoint, by name; slices have names of their own (slice_key).
struct BundleIndex {
  int num_shards = 1;
  bool big_endian = false;
  std::map<std::string, proto::BundleEntryProto> entries;
};
std::string encode_index(const BundleIndex& index);
/// Throws DataLossError or UnimplementedError; errors call it `path`.
BundleIndex decode_index(std::string_view bytes, const std::string& path);
/// Throws NotFoundError in TensorFlow's words if there is none.
BundleIndex read_index(const std::string& prefix);

/// The name under which a slice is in the index: it sorts as tensor name, rank, then extents do.
std::string slice_key(const std::string& name, const TensorSlice& slice);
bool is_slice_key(std::string_view key);
TensorSlice decode_slice(const proto::TensorSliceProto& proto);
proto::TensorSliceProto encode_slice(const TensorSlice& slice);
/// With kWhole made a number. Throws InvalidArgumentError if the slice leaves the shape.
TensorSlice resolve(const TensorSlice& slice, const Shape& shape);

// ---- Strings: their lengths, a checksum of these, then all characters. ----

struct EncodedStrings {
  std::string head;       ///< lengths and their checksum
  std::uint32_t crc = 0;  ///< of all, as the index has it (not masked)
};
/// The characters follow the head.
EncodedStrings encode_strings_head(const Array& strings);
/// Throws DataLossError that gives a reason. `stored_crc` is the index's, not masked.
Array decode_strings(std::string_view bytes, const Shape& shape, std::uint32_t stored_crc);

/// "stored X vs. calculated on the restored bytes Y"
[[noreturn]] void throw_checksum(std::uint32_t stored, std::uint32_t calculated);

}  // namespace tandem::io
