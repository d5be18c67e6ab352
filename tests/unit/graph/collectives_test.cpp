#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/cancellation.h"
#include "tandem/core/error.h"
#include "tandem/graph/local_collectives.h"

namespace tandem {
namespace {

Array floats(std::vector<float> values) { return Array::vector(values); }

std::vector<float> values_of(const Array& array) {
  const auto values = array.values<float>();
  return {values.begin(), values.end()};
}

// What a member got.
struct Got {
  Code code = Code::kUnknown;
  Array value;
  int calls = 0;
  Collectives::Done done() {
    return [this](const std::exception_ptr& error, Array result) {
      ++calls;
      code = error ? code_of(error) : Code::kOk;
      value = std::move(result);
    };
  }
};

TEST(Collectives, ReduceInOrderOfRankInWhateverOrderTheyCome) {
  LocalCollectives collectives;
  Got got[3];
  for (const int rank : {2, 0, 1}) {
    EXPECT_EQ(got[0].calls, 0);
    collectives.all_reduce({.key = "k", .group_size = 3, .rank = rank},
                           floats({static_cast<float>(rank), 1}), Collectives::Reduction::kMean,
                           got[rank].done());
  }
  for (const Got& g : got) {
    EXPECT_EQ(g.calls, 1);
    EXPECT_EQ(g.code, Code::kOk);
    EXPECT_EQ(values_of(g.value), (std::vector<float>{1, 1}));
  }
}

TEST(Collectives, GatherAndBroadcast) {
  LocalCollectives collectives;
  Got a, b;
  collectives.all_gather({.key = "k", .group_size = 2, .rank = 1}, floats({3}), b.done());
  collectives.all_gather({.key = "k", .group_size = 2, .rank = 0}, floats({1, 2}), a.done());
  EXPECT_EQ(values_of(a.value), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(values_of(b.value), (std::vector<float>{1, 2, 3}));
  collectives.broadcast({.key = "k", .group_size = 2, .rank = 0}, floats({1}), 1, a.done());
  collectives.broadcast({.key = "k", .group_size = 2, .rank = 1}, floats({7}), 1, b.done());
  EXPECT_EQ(values_of(a.value), std::vector<float>{7});
}

TEST(Collectives, MembersThatDifferFailAll) {
  LocalCollectives collectives;
  Got a, b;
  collectives.all_reduce({.key = "k", .group_size = 2, .rank = 0}, floats({1}),
                         Collectives::Reduction::kSum, a.done());
  collectives.all_reduce({.key = "k", .group_size = 2, .rank = 1}, floats({1}),
                         Collectives::Reduction::kMax, b.done());
  EXPECT_EQ(a.code, Code::kInvalidArgument);
  EXPECT_EQ(b.code, Code::kInvalidArgument);
  collectives.all_reduce({.key = "k", .group_size = 2, .rank = 0}, floats({1}),
                         Collectives::Reduction::kSum, a.done());
  collectives.all_reduce({.key = "k", .group_size = 2, .rank = 1}, floats({1, 2}),
                         Collectives::Reduction::kSum, b.done());
  EXPECT_EQ(a.code, Code::kInvalidArgument);
  EXPECT_EQ(b.code, Code::kInvalidArgument);
  collectives.all_gather({.key = "k", .group_size = 2, .rank = 2}, floats({1}), a.done());
  EXPECT_EQ(a.code, Code::kInvalidArgument);
}

TEST(Collectives, ACancelledMemberFailsAll) {
  LocalCollectives collectives;
  Got a, b;
  Cancellation stop;
  collectives.all_gather({.key = "k", .group_size = 3, .rank = 0}, floats({1}), a.done());
  collectives.all_gather({.key = "k", .group_size = 3, .rank = 1, .cancellation = &stop},
                         floats({1}), b.done());
  EXPECT_EQ(a.calls, 0);
  stop.cancel();
  EXPECT_EQ(a.code, Code::kCancelled);
  EXPECT_EQ(b.code, Code::kCancelled);
  EXPECT_EQ(a.calls + b.calls, 2);
}

}  // namespace
}  // namespace tandem
