// What explanations say of values that go from task to task.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tandem/runtime/explain.h>
#include <tandem/tandem.h>

namespace {

namespace td = tandem;
using td::Explanation;
using td::Tensor;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The network: 1 GB/s and 1 ms.
td::ExplainOptions on_two_workers_and_a_server() {
  td::ExplainOptions options;
  options.devices = td::DeviceSet::parse_json(R"({"devices": [
    {"name": "/job:worker/task:0/CPU:0", "tasks": 2, "flops": "10G", "bandwidth": "10GB/s"},
    {"name": "/job:worker/task:0/GPU:0", "tasks": 2, "flops": "1T", "bandwidth": "100GB/s",
     "link": "10GB/s", "latency": "10us"},
    {"name": "/job:ps/task:0/CPU:0", "flops": "10G", "bandwidth": "10GB/s"}],
    "network": {"bandwidth": "1GB/s", "latency": "1ms"}})");
  return options;
}

Tensor on(const std::string& device, const Tensor& x) {
  const td::DeviceScope there(device);
  return td::exp(x);
}

TEST(ExplainNetwork, SaysWhatCrossesBetweenWhichTasks) {
  const auto f = td::function([](Tensor x) {
    const Tensor there = on("/job:worker/task:1/GPU:0", x);
    return on("/job:ps/task:0", there) + on("/job:worker/task:1/CPU:0", x);
  });
  const Explanation e = td::explain(on_two_workers_and_a_server(), f, td::ones({1000, 250}));
  const double mb = 1e6, way = 1e-3 + mb / 1e9;
  // x to worker 1, the value between it and the server, and what both give the sum.
  ASSERT_EQ(e.network.size(), 4u);
  EXPECT_EQ(e.network_bytes(), 4 * mb);
  EXPECT_NEAR(e.network_seconds(), 4 * way, 1e-9);
  const auto task = [&](int device) { return e.devices[static_cast<std::size_t>(device)].task; };
  for (const Explanation::Transfer& transfer : e.network) {
    EXPECT_EQ(transfer.bytes, static_cast<double>(transfer.copies.size()) * mb);
    EXPECT_NEAR(transfer.seconds, static_cast<double>(transfer.copies.size()) * way, 1e-9);
    EXPECT_NE(task(transfer.from), task(transfer.to));
  }
  EXPECT_THAT(e.to_text(),
              AllOf(HasSubstr("network   3.81 MiB a step between tasks, 8.00 ms on the way"),
                    HasSubstr("/job:worker/task:0  /job:worker/task:1  1 "),
                    HasSubstr("/job:worker/task:1/GPU:0")));
  // The value leaves the accelerator by its host, where nothing reads it.
  EXPECT_THAT(e.to_text(), HasSubstr("on its way to /job:ps/task:0/CPU:0"));
  EXPECT_THAT(e.to_html(), HasSubstr("a step over the network"));
  const auto json = nlohmann::json::parse(e.to_json());
  EXPECT_EQ(json["network_bytes"], 4 * mb);
  EXPECT_EQ(json["network"].size(), 4u);
  EXPECT_EQ(json["network"][0]["values"].size(), e.network[0].copies.size());
}

TEST(ExplainNetwork, AdvisesAgainstManySmallMessages) {
  const auto f = td::function([](Tensor x) {
    Tensor sum(0.0f);
    for (int i = 0; i < 6; ++i) {
      const Tensor part = on("/job:ps/task:0", x + static_cast<float>(i));
      const td::DeviceScope here("/job:worker/task:0/CPU:0");
      sum = sum + td::reduce_sum(part);
    }
    return sum;
  });
  const Explanation e = td::explain(on_two_workers_and_a_server(), f, td::ones({4}));
  ASSERT_FALSE(e.advice.empty());
  EXPECT_THAT(e.to_text(), HasSubstr("small values that go from /job:ps/task:0 to "
                                     "/job:worker/task:0 each step together"));
  for (const Explanation::Advice& advice : e.advice) EXPECT_LT(advice.step_seconds, e.step_seconds);
}

TEST(ExplainNetwork, AdvisesToComputeWhereTheValuesAre) {
  // A large value goes to the server for a sum of it.
  const auto f = td::function([](Tensor x) {
    const Tensor large = on("/job:worker/task:0/CPU:0", x);
    const td::DeviceScope there("/job:ps/task:0");
    return td::reduce_sum(large);
  });
  const Explanation e = td::explain(on_two_workers_and_a_server(), f, td::ones({1000, 1000}));
  EXPECT_EQ(e.network_bytes(), 4e6);
  ASSERT_FALSE(e.advice.empty());
  EXPECT_THAT(
      e.advice.front().text,
      AllOf(HasSubstr("from /job:ps/task:0/CPU:0 to /job:worker/task:0/"), HasSubstr("(Sum)")));
}

TEST(ExplainNetwork, OneTaskHasNone) {
  const auto f = td::function([](Tensor x) { return td::exp(x); });
  const Explanation e = td::explain(f, td::ones({4}));
  EXPECT_THAT(e.network, IsEmpty());
  EXPECT_EQ(e.to_text().find("network"), std::string::npos);
}

}  // namespace
