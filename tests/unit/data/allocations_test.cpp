// Steady iteration on the consumer's thread takes no heap memory for each element.
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/tandem.h"

#include "tests/unit/data/allocations_util.h"

namespace tandem::data {
namespace {

constexpr std::int64_t kMany = 1'000'000;
constexpr int kWarm = 200;  // elements: plans are made, lists and buffers have grown

// So many next() take how many blocks of memory from the heap, for each of them?
double allocations(const Dataset& dataset, int count) {
  auto it = dataset.iterator();
  Element element;
  for (int i = 0; i < kWarm; ++i) EXPECT_TRUE(it.next(element));
  const AllocationCount counted;
  for (int i = 0; i < count; ++i) EXPECT_TRUE(it.next(element));
  return static_cast<double>(counted.so_far()) / count;
}

Tensor one() { return Tensor(std::int64_t{1}); }
Tensor plus_one(Tensor x) { return x + one(); }
Tensor even(Tensor x) {
  return equal(floormod(x, Tensor(std::int64_t{2})), Tensor(std::int64_t{0}));
}
// Cannot run on whole batches.
Tensor eight(Tensor x) { return cumsum(broadcast_to(reshape(x, {1}), {8}), 0); }
Tensor large(Tensor x) { return greater(reduce_sum(x), Tensor(std::int64_t{3})); }
// A tensor with one of nine sets of sizes.
Tensor some(Tensor x) { return fill(reshape(floormod(x, Tensor(std::int64_t{9})), {1}), x); }
Tensor twice(Tensor x) { return x + x; }

struct Pipeline {
  std::string name;
  std::function<Dataset(Dataset)> of_numbers;
  double allowed = 0;  // blocks for each element, or batch whatever its size
};
std::ostream& operator<<(std::ostream& out, const Pipeline& p) { return out << p.name; }
std::string name_of(const ::testing::TestParamInfo<Pipeline>& info) { return info.param.name; }

class OfElements : public ::testing::TestWithParam<Pipeline> {};
class OfBatches : public ::testing::TestWithParam<Pipeline> {};

TEST_P(OfElements, TakeNoHeapMemory) {
  // Counting replaces the heap's functions, which sanitizers have replaced; other builds never
  // skip.
  if (!AllocationCount::possible()) GTEST_SKIP() << "a sanitizer has the heap";
  EXPECT_LE(allocations(GetParam().of_numbers(range(kMany)), 1000), GetParam().allowed);
}

Tensor outside() { return Tensor(std::int64_t{5}); }

INSTANTIATE_TEST_SUITE_P(
    Allocations, OfElements,
    ::testing::Values(
        Pipeline{"range", [](Dataset d) { return d; }},
        Pipeline{"map", [](Dataset d) { return d.map(plus_one); }},
        Pipeline{"map_of_vectors", [](Dataset d) { return d.map(eight); }},
        Pipeline{"map_called",
                 [](Dataset d) { return d.map([k = outside()](Tensor x) { return x + k; }); }},
        Pipeline{"map_of_two",
                 [](Dataset d) {
                   return d.enumerate().map([](Tensor n, Tensor x) { return std::pair(x, n + x); });
                 }},
        Pipeline{"filter", [](Dataset d) { return d.filter(even); }},
        Pipeline{"long_filter",
                 [](Dataset d) { return d.filter([](Tensor x) { return even(x * x + x * x); }); }},
        Pipeline{"map_filter", [](Dataset d) { return d.map(plus_one).filter(even); }},
        Pipeline{"filter_map", [](Dataset d) { return d.filter(even).map(plus_one); }},
        Pipeline{"shuffle_map", [](Dataset d) { return d.map(eight).shuffle(100).map(twice); }},
        Pipeline{"shuffle_repeat",
                 [](Dataset d) { return d.take(500).map(eight).shuffle(100).repeat(); },
                 2 * 3 / 1000.0},  // two passes begin, with an iterator for each of three stages
        Pipeline{"unbatch", [](Dataset d) { return d.map(eight).unbatch(); }},
        Pipeline{"skip_take", [](Dataset d) { return d.skip(5).take(kMany / 2).map(plus_one); }},
        Pipeline{"sizes", [](Dataset d) { return d.map(some).map(twice, {.traced = true}); }}),
    name_of);

TEST_P(OfBatches, TakeNoHeapMemoryForTheirElements) {
  // Counting replaces the heap's functions, which sanitizers have replaced; other builds never
  // skip.
  if (!AllocationCount::possible()) GTEST_SKIP() << "a sanitizer has the heap";
  EXPECT_LE(allocations(GetParam().of_numbers(range(kMany)), 100), GetParam().allowed);
}

INSTANTIATE_TEST_SUITE_P(
    Allocations, OfBatches,
    ::testing::Values(
        Pipeline{"on_batches", [](Dataset d) { return d.map(plus_one).batch(64); }, 3},
        Pipeline{"map_batch", [](Dataset d) { return d.map(eight).batch(64); }, 4},
        Pipeline{
            "map_called_batch",
            [](Dataset d) { return d.map([k = outside()](Tensor x) { return x + k; }).batch(64); },
            3},
        Pipeline{"filter_batch", [](Dataset d) { return d.filter(even).batch(64); }, 3},
        Pipeline{"map_filter_batch", [](Dataset d) { return d.map(eight).filter(large).batch(64); },
                 5},
        Pipeline{"filter_map_batch", [](Dataset d) { return d.filter(even).map(eight).batch(64); },
                 4},
        Pipeline{"padded_batch", [](Dataset d) { return d.padded_batch(64); }, 3},
        Pipeline{"padded_batch_of_sizes", [](Dataset d) { return d.map(some).padded_batch(64); },
                 7},
        Pipeline{"padded_batch_of_matrices",
                 [](Dataset d) {
                   return d.map([](Tensor x) {
                             return reshape(eight(x), {2, 4});
                           })
                       .padded_batch(64, {.padded_shapes = {{3, 5}}});
                 },
                 7}),
    name_of);

// Memory serves again only where nothing holds the element.
TEST(Allocations, ElementsThatAreHeldStayAsTheyWere) {
  const auto pipelines = {range(400).map(plus_one), range(400).map(eight).map(twice),
                          range(400).map(plus_one).filter(even).map(plus_one),
                          range(400).map(eight).shuffle(7, {.seed = 3}),
                          range(400).map(some).padded_batch(8)};
  for (const Dataset& dataset : pipelines) {
    std::vector<Element> held;
    std::vector<std::vector<std::int64_t>> seen;
    auto it = dataset.iterator();
    Element element;
    while (it.next(element)) {
      held.push_back(element);
      seen.push_back(element.at(0).to_vector<std::int64_t>());
    }
    ASSERT_GT(held.size(), 40u);
    for (std::size_t i = 0; i < held.size(); ++i) {
      EXPECT_EQ(held[i].at(0).to_vector<std::int64_t>(), seen[i]) << dataset << " element " << i;
    }
  }
}

}  // namespace
}  // namespace tandem::data
