// Datasets that are iterated on another task.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/tandem.h"

#include "tests/unit/distribute/two_workers.h"

namespace tandem::distribute {
namespace {

using data::Dataset;
using data::Element;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kThere = "/job:worker/replica:0/task:1/device:CPU:0";

// Each element as text, of one pass; `devices` gets where the components were.
std::vector<std::string> values(const Dataset& dataset, std::set<std::string>* devices = nullptr) {
  std::vector<std::string> all;
  for (const Element& element : dataset) {
    std::string& text = all.emplace_back();
    for (const Tensor& part : element) {
      if (devices) devices->insert(part.device());
      text += part.array().to_string() + ";";
    }
  }
  return all;
}

class RemoteDatasetTest : public TwoWorkers {
 protected:
  // The elements are there, and those of an iteration here.
  static void expect_there(const Dataset& dataset) {
    const std::vector<std::string> expected = values(dataset);
    ASSERT_FALSE(expected.empty());
    const DeviceScope there(worker(1));
    std::set<std::string> devices;
    EXPECT_EQ(values(dataset, &devices), expected);
    EXPECT_THAT(devices, ElementsAre(kThere));
  }
};

TEST_F(RemoteDatasetTest, SourcesAndTransformations) {
  const Tensor x = reshape(range(24.0f), {8, 3}), y = range(8);
  expect_there(Dataset::range(10).batch(3).repeat(2).prefetch(1));
  expect_there(Dataset::range(20, 2, -3).skip(1).take(4).batch(2, {.drop_remainder = true}));
  expect_there(Dataset::from_tensor_slices({x, y}).batch(4).cache());
  expect_there(data::zip({Dataset::range(3), Dataset::from_tensors(x).repeat()}));
  expect_there(Dataset::range(3).concatenate(Dataset::range(5)).shard(2, 1).enumerate(5));
  expect_there(Dataset::range(9).batch(2, {.num_parallel_calls = 2}).with_options({}));
  expect_there(Dataset::from_tensor_slices(tensor<std::string>({"a", "bc"})));
  expect_there(Dataset::range(100).shuffle(50, {.seed = 3}).repeat(2));
  expect_there(Dataset::range(10).split(0.5, 7).second);
}

TEST_F(RemoteDatasetTest, FunctionsOfElements) {
  const Tensor factor(std::int64_t{3});
  expect_there(
      Dataset::range(6)
          .map([factor](Tensor i) { return std::pair(i * factor, i); })
          .filter([](Tensor, Tensor b) { return b % std::int64_t{2} == std::int64_t{0}; }));
  expect_there(Dataset::range(20)
                   .map([](Tensor i) { return i * i; }, {.num_parallel_calls = 4})
                   .map([](Tensor i) { return i + std::int64_t{1}; })
                   .batch(5));
}

TEST_F(RemoteDatasetTest, WhatPassesLeaveStaysThere) {
  const DeviceScope there(worker(1));
  const Dataset shuffled = Dataset::range(50).shuffle(50);
  const std::vector<std::string> first = values(shuffled), second = values(shuffled);
  EXPECT_NE(first, second);
  EXPECT_THAT(second, testing::UnorderedElementsAreArray(first));
}

TEST_F(RemoteDatasetTest, ElementsFeedCallsThereAndAnywhere) {
  Tensor sum;
  data::Iterator iterator = [] {
    const DeviceScope there(worker(1));
    return Dataset::range(4).batch(2).iterator();
  }();
  Element first = iterator.next();  // the scope of the beginning counts
  EXPECT_EQ(first[0].device(), kThere);
  {
    const DeviceScope there(worker(0));
    sum = first[0] + iterator.next()[0];
  }
  EXPECT_EQ(sum.device(), "/job:worker/replica:0/task:0/device:CPU:0");
  EXPECT_THAT(sum.array().values<std::int64_t>(), ElementsAre(2, 4));
  EXPECT_THROW(static_cast<void>(iterator.next()), OutOfRangeError);
}

TEST_F(RemoteDatasetTest, AnElementThatFailsIsThrownAndPassed) {
  const DeviceScope there(worker(1));
  const Dataset dataset = Dataset::range(2).map([](Tensor i) {
    return linalg::inv(zeros({2, 2}) + cast(i, DType::kFloat) * eye(2));
  });
  data::Iterator iterator = dataset.iterator();
  try {
    static_cast<void>(iterator.next());
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("not invertible"));
  }
  EXPECT_THAT(iterator.next()[0].array().values<float>(), ElementsAre(1, 0, 0, 1));
}

TEST_F(RemoteDatasetTest, WhatOnlyThisProcessCanMakeRunsHere) {
  const auto numbers = Dataset::from_generator(
      [] {
        return [i = 0](Element& out) mutable {
          out = {Tensor(i)};
          return ++i <= 2;
        };
      },
      {{DType::kInt32, PartialShape::scalar()}});
  const DeviceScope there(worker(1));
  testing::internal::CaptureStderr();
  EXPECT_EQ(values(numbers.repeat(1)).size(), 2u);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("a dataset runs in this process instead of on " + std::string(kThere) +
                        ": A Generator dataset cannot be made by an op"));
}

TEST_F(RemoteDatasetTest, EndsWithItsConnection) {
  const Dataset dataset = Dataset::range(3);
  {
    const DeviceScope there(worker(1));
    EXPECT_EQ(values(dataset).size(), 3u);
  }
  TearDown();
  SetUp();  // another connection, which knows nothing of the first one's values
  const DeviceScope there(worker(1));
  EXPECT_EQ(values(dataset).size(), 3u);
}

}  // namespace
}  // namespace tandem::distribute
