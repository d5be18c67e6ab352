// Sources as static members of Dataset, where tf.data has them, and functions that take datasets.

#include <algorithm>

#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/data/data.h"
#include "tandem/ops/ops.h"

namespace tandem::data {
namespace {

std::vector<std::int64_t> numbers(const Dataset& dataset) {
  std::vector<std::int64_t> all;
  for (const Element& e : dataset) all.push_back(cast(e[0], int64).item<std::int64_t>());
  return all;
}

using Numbers = std::vector<std::int64_t>;

TEST(DatasetMembers, AreTfDatasSources) {
  EXPECT_EQ(numbers(Dataset::range(3)), (Numbers{0, 1, 2}));
  EXPECT_EQ(numbers(Dataset::range(1, 7, 2)), (Numbers{1, 3, 5}));
  EXPECT_EQ(numbers(Dataset::from_tensor_slices(Tensor{4, 5})), (Numbers{4, 5}));
  EXPECT_EQ(Dataset::from_tensor_slices({ones({3, 2}), zeros({3})}).element_spec().size(), 2U);
  EXPECT_EQ(Dataset::from_tensors(ones({3, 2})).cardinality(), 1);
  EXPECT_EQ(Dataset::zip({Dataset::range(3), Dataset::range(5)}).cardinality(), 3);
  const TensorMap named{{"a", Tensor{1, 2}}, {"b", Tensor{3, 4}}};
  EXPECT_EQ(Dataset::from_tensor_slices(named).names(), (Names{"a", "b"}));
  EXPECT_EQ(Dataset::from_tensor_slices({{"a", Tensor{1, 2}}}).names(), Names{"a"});
  EXPECT_EQ(Dataset::from_tensor_slices(ragged::constant<int>({{1}, {2, 3}})).cardinality(), 2);
  const auto three = Dataset::from_generator(
      [] {
        return [i = 0](Element& out) mutable {
          if (i == 3) return false;
          out = {Tensor(i++)};
          return true;
        };
      },
      {{int32, PartialShape::scalar()}});
  EXPECT_EQ(numbers(three), (Numbers{0, 1, 2}));
  EXPECT_EQ(numbers(Dataset::choose_from_datasets({Dataset::range(2), Dataset::range(5, 7)},
                                                  Dataset::range(2))),
            (Numbers{0, 5}));
  Numbers sampled = numbers(Dataset::sample_from_datasets({Dataset::range(2), Dataset::range(2)}));
  std::sort(sampled.begin(), sampled.end());
  EXPECT_EQ(sampled, (Numbers{0, 0, 1, 1}));
  EXPECT_THROW(Dataset::list_files("/there/is/nothing/*.txt"), InvalidArgumentError);
}

TEST(FlatMap, GivesWindowsAsDatasets) {
  const auto pairs = Dataset::range(4)
                         .window(2, {.shift = 1, .drop_remainder = true})
                         .flat_map([](Dataset window) { return window.batch(2); });
  std::vector<Numbers> rows;
  for (const Element& e : pairs) rows.push_back(e[0].to_vector<std::int64_t>());
  EXPECT_EQ(rows, (std::vector<Numbers>{{0, 1}, {1, 2}, {2, 3}}));
  const auto wrong = Dataset::range(4).flat_map([](Dataset x) { return x; });
  EXPECT_THROW(numbers(wrong), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::data
