#include "tandem/distribute/internal/parameters/sharding.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/fs/crc32c.h"

namespace tandem::distribute {

std::int64_t Partitioner::num_shards(std::int64_t rows, std::int64_t bytes) const {
  rows = std::max<std::int64_t>(rows, 1);
  std::int64_t shards = 1;
  switch (kind) {
    case kWhole: return 1;
    case kFixedShards: shards = value; break;
    case kMinSize: shards = std::min(value > 0 ? bytes / value : 1, max_shards); break;
    case kMaxSize:
      shards = value > 0 ? (bytes + value - 1) / value : 1;
      if (max_shards > 0) shards = std::min(shards, max_shards);
      break;
  }
  return std::clamp<std::int64_t>(shards, 1, rows);
}

std::vector<std::vector<Shard>> shard_variables(const std::vector<ShardedVariable>& variables,
                                                int servers, const Partitioner& partitioner,
                                                ShardPlacement placement) {
  std::vector<std::vector<Shard>> all;
  std::vector<std::int64_t> load(static_cast<std::size_t>(servers), 0);
  int next = 0;
  for (const ShardedVariable& variable : variables) {
    const std::int64_t count = partitioner.num_shards(variable.rows, variable.bytes);
    std::vector<Shard>& shards = all.emplace_back();
    std::int64_t begin = 0;
    for (std::int64_t s = 0; s < count; ++s) {
      Shard shard;
      shard.name = count == 1 ? variable.name : cat(variable.name, "/part_", s);
      shard.begin = begin;
      // The first shards have one row more where they cannot be equal.
      shard.end = begin + variable.rows / count + (s < variable.rows % count ? 1 : 0);
      begin = shard.end;
      switch (placement) {
        case ShardPlacement::kRoundRobin: shard.server = next++ % servers; break;
        case ShardPlacement::kBySize:
          shard.server =
              static_cast<int>(std::min_element(load.begin(), load.end()) - load.begin());
          break;
        case ShardPlacement::kByHash:
          shard.server = static_cast<int>(fs::crc32c(shard.name) % static_cast<unsigned>(servers));
          break;
      }
      load[static_cast<std::size_t>(shard.server)] +=
          variable.bytes / variable.rows * (shard.end - shard.begin);
      shards.push_back(std::move(shard));
    }
  }
  return all;
}

}  // namespace tandem::distribute
