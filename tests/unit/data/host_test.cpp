#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/ops/ops.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

// With an accelerator, which ops outside of pipelines take.
class Host : public ::testing::Test {
 protected:
  std::int64_t used() const { return config::get_memory_info("GPU:0").current; }

  // Where the first components lie.
  static std::vector<std::string> devices(const Dataset& dataset) {
    std::vector<std::string> all;
    for (const Element& element : dataset) all.push_back(element.at(0).device());
    return all;
  }
  void expect_host(const Dataset& dataset) const {
    const auto all = devices(dataset);
    EXPECT_FALSE(all.empty());
    EXPECT_THAT(all, Each(HasSubstr("CPU:0"))) << dataset;
    EXPECT_EQ(used(), 0) << dataset;
    const DeviceScope around("/GPU:0");
    EXPECT_THAT(devices(dataset), Each(HasSubstr("CPU:0"))) << dataset << ", in a scope";
  }

  Runtime runtime_{{.devices = {.emulate = {"GPU:1,memory=64MiB"}}}};
  RuntimeScope scope_{runtime_};
};

Tensor floats(const Tensor& x) { return fill({3}, cast(x, float32)); }

TEST_F(Host, FunctionsRunThere) {
  EXPECT_THAT(floats(Tensor(std::int64_t{1})).device(), HasSubstr("GPU:0"));
  const float scale = 2;
  const auto scaled = [scale](const Tensor& x) { return floats(x) * scale; };
  expect_host(range(40).map(scaled));
  expect_host(range(40).map(scaled, {.num_parallel_calls = 2}).batch(4));
  expect_host(range(3).map([](const Tensor& x) { return floats(x); }));
  expect_host(range(40).map([](const Tensor& x) { return floats(x); }));
  expect_host(range(40).map(scaled).shuffle(20).prefetch(2));
  expect_host(range(40).scan({Tensor(0.0f)}, [](const Element& state, const Element& x) {
    const Tensor sum = state[0] + cast(x[0], float32);
    return std::pair(sum, sum);
  }));
  expect_host(from_tensor_slices({{"a", Tensor{1.0, 2.0}}}).map([scale](TensorMap e) {
    e["a"] = e["a"] * scale;
    return e;
  }));
  expect_host(
      range(4).flat_map([](const Tensor& x) { return from_tensor_slices(floats(x)).repeat(2); }));
}

TEST_F(Host, ConditionsKeysAndGeneratorsDo) {
  std::vector<std::string> seen;
  const auto see = [&](const Tensor& x) {
    seen.push_back((cast(x, float32) * 2.0f).device());
    return true;
  };
  numbers(range(3).filter(see));
  numbers(range(3).take_while(see));
  numbers(range(3).flat_map([&](const Tensor& x) {
    see(x);
    return range(1);
  }));
  numbers(range(3).group_by_window(
      [&](const Tensor& x) {
        see(x);
        return 0;
      },
      [](std::int64_t, const Dataset& window) { return window; }, 2));
  EXPECT_EQ(seen.size(), 12u);
  EXPECT_THAT(seen, Each(HasSubstr("CPU:0")));
  expect_host(from_generator(
      [] {
        return [i = 0](Element& out) mutable {
          out = {ones({2})};
          return i++ < 3;
        };
      },
      {{float32, PartialShape{2}}}));
  const Tensor sum = range(5).reduce(
      Tensor(0.0f), [](const Tensor& s, const Tensor& x) { return s + cast(x, float32); });
  EXPECT_THAT(sum.device(), HasSubstr("CPU:0"));
}

TEST_F(Host, TheirOwnDeviceScopesCount) {
  const auto there = [](const Tensor& x) {
    const DeviceScope on("/GPU:0");
    return floats(x);
  };
  for (const std::int64_t count : {3, 40}) {  // called, and too many to be called without need
    EXPECT_THAT(devices(range(count).map(there)), Each(HasSubstr("GPU:0"))) << count;
  }
  EXPECT_THAT(message_of_thrown<UnimplementedError>(
                  [&] { numbers(range(40).map(there, {.traced = true})); }),
              HasSubstr("what is traced runs on the host's CPU"));
  EXPECT_THAT(devices(range(3).map([](const Tensor& x) {
                const DeviceScope none("");
                return floats(x);
              })),
              Each(Not(HasSubstr("CPU"))));
}

}  // namespace
}  // namespace tandem::data
