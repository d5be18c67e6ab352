#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/distribute/parameter_server_strategy.h"

namespace tandem::distribute {

/// Rows [begin, end) of a variable, on the server of that number.
struct Shard {
  std::string name;
  int server = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The shards of each variable, given by name, rows (1 for a scalar) and bytes.
struct ShardedVariable {
  std::string name;
  std::int64_t rows = 1;
  std::int64_t bytes = 0;
};
std::vector<std::vector<Shard>> shard_variables(const std::vector<ShardedVariable>& variables,
                                                int servers, const Partitioner& partitioner,
                                                ShardPlacement placement);

}  // namespace tandem::distribute
