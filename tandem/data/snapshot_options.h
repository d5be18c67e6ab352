#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tandem/core/string.h"
#include "tandem/data/element_functions.h"

namespace tandem::data {

class Dataset;

struct SnapshotOptions {
  String compression = "AUTO";  ///< "AUTO" (none), "", "GZIP" or "ZLIB"
  std::int64_t num_shards = 4;  ///< files that the elements are dealt out to in turns
  /// Instead of turns: the number of the file, from an element.
  std::optional<ElementNumber> shard_func = std::nullopt;
  /// The elements, of a dataset whose elements hold one shard each (`from_variant`); for example
  /// `[](Dataset shards) { return shards.shuffle(8).interleave(td::data::from_variant); }`. Without
  /// it the shards are read in turns, in parallel: in the order of writing unless there is a
  /// `shard_func`.
  std::function<Dataset(Dataset shards)> reader_func = nullptr;
  /// Part of the fingerprint: change it when functions of the pipeline change, which the
  /// fingerprint cannot see.
  String version = {};
};

}  // namespace tandem::data
