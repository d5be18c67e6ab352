// Tables in functions of a pipeline.

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/ops/lookup.h"
#include "tandem/ops/operators.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::ElementsAre;

TEST(LookupInMap, IsCalledTracedAndParallel) {
  const lookup::StaticVocabularyTable words(
      lookup::KeyValueTensorInitializer{Tensor{"a", "b"}, tensor<std::int64_t>({0, 1})}, 1);
  const auto lines = from_tensor_slices(Tensor{"b", "x", "a", "b"});
  for (const std::int64_t calls : {0, 3}) {
    for (const bool traced : {false, true}) {
      const auto ids = lines.map([words](Tensor word) { return words.lookup(word); },
                                 {.num_parallel_calls = calls, .traced = traced});
      EXPECT_THAT(numbers(ids), ElementsAre(1, 2, 0, 1)) << calls << traced;
      EXPECT_EQ(to_string(ids.batch(2).element_spec()), "(int64[?])");
      EXPECT_EQ(text(ids.batch(4)), "[1 2 0 1]");
    }
  }
}

TEST(LookupInMap, SeesWhatIsInsertedMeanwhile) {
  const lookup::MutableHashTable table(DType::kInt64, DType::kInt64, -1);
  auto it =
      range(3).map([table](Tensor x) { return table.lookup(x); }, {.traced = true}).iterator();
  EXPECT_THAT(numbers(it, 1), ElementsAre(-1));
  table.insert(tensor<std::int64_t>({1, 2}), tensor<std::int64_t>({10, 20}));
  EXPECT_THAT(numbers(it), ElementsAre(10, 20));
}

TEST(LookupInMap, OutlivesItsHandle) {
  const auto make = [] {
    const lookup::StaticHashTable table(
        lookup::KeyValueTensorInitializer{tensor<std::int64_t>({0, 1}), Tensor{"zero", "one"}},
        "many");
    return range(3).map([table](Tensor x) { return table.lookup(x); });
  };
  EXPECT_EQ(text(make()), "b'zero' | b'one' | b'many'");
}

}  // namespace
}  // namespace tandem::data
