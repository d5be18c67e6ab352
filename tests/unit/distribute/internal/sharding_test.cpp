#include "tandem/distribute/internal/parameters/sharding.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::distribute {
namespace {

using Servers = std::vector<int>;

// The server of each shard, in order.
Servers servers_of(const std::vector<ShardedVariable>& variables, int servers,
                   ShardPlacement placement, const Partitioner& partitioner = {}) {
  Servers found;
  for (const auto& shards : shard_variables(variables, servers, partitioner, placement)) {
    for (const Shard& shard : shards) found.push_back(shard.server);
  }
  return found;
}

const std::vector<ShardedVariable> kVariables{
    {"table", 1000, 64'000}, {"a", 10, 4'000}, {"b", 1, 4}, {"c", 100, 40'000}, {"d", 10, 30'000}};

TEST(ShardingTest, ByTurns) {
  EXPECT_EQ(servers_of(kVariables, 2, ShardPlacement::kRoundRobin), (Servers{0, 1, 0, 1, 0}));
}

TEST(ShardingTest, BySizeEachShardGoesToTheServerWithTheFewestBytes) {
  EXPECT_EQ(servers_of(kVariables, 2, ShardPlacement::kBySize), (Servers{0, 1, 1, 1, 1}));
  EXPECT_EQ(servers_of(kVariables, 3, ShardPlacement::kBySize), (Servers{0, 1, 2, 2, 1}));
  // Shards count by their rows: 500 each of the table, then 50 each of "c".
  EXPECT_EQ(servers_of({kVariables[0], kVariables[3], kVariables[2]}, 2, ShardPlacement::kBySize,
                       Partitioner::fixed_shards(2)),
            (Servers{0, 1, 0, 1, 0}));
}

TEST(ShardingTest, ByHashAShardStaysWhereItIs) {
  const Servers few = servers_of(kVariables, 4, ShardPlacement::kByHash);
  std::vector<ShardedVariable> more = kVariables;
  more.insert(more.begin(), {"first", 5, 100});
  Servers after = servers_of(more, 4, ShardPlacement::kByHash);
  after.erase(after.begin());
  EXPECT_EQ(after, few);
  // Many names are spread over all servers.
  std::vector<ShardedVariable> many;
  for (int i = 0; i < 400; ++i) many.push_back({"v" + std::to_string(i), 1, 4});
  std::map<int, int> counts;
  for (const int server : servers_of(many, 4, ShardPlacement::kByHash)) ++counts[server];
  ASSERT_EQ(counts.size(), 4u);
  for (const auto& [server, count] : counts) EXPECT_GT(count, 50) << server;
}

TEST(ShardingTest, RowsAreCutOnceEach) {
  const auto shards = shard_variables({{"w", 10, 40}}, 2, Partitioner::fixed_shards(3),
                                      ShardPlacement::kRoundRobin)[0];
  ASSERT_EQ(shards.size(), 3u);
  std::int64_t next = 0;
  for (const Shard& shard : shards) {
    EXPECT_EQ(shard.begin, next);
    EXPECT_GE(shard.end - shard.begin, 3);
    next = shard.end;
  }
  EXPECT_EQ(next, 10);
  EXPECT_EQ(shards[2].name, "w/part_2");
}

}  // namespace
}  // namespace tandem::distribute
