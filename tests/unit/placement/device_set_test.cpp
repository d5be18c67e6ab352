#include "tandem/placement/device_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/placement/schedule_util.h"

namespace tandem::schedule_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHost = R"({"name": "CPU:0", "flops": "100G", "bandwidth": "20GB/s"})";

std::string with(const std::string& device) {
  return std::string("{\"devices\": [") + kHost + ", " + device + "]}";
}

TEST(DeviceSetTest, Parses) {
  const DeviceSet set = DeviceSet::parse_json(with(
      R"({"name": "GPU:1", "count": 2, "flops": 1e13, "bandwidth": "500GB/s", "overhead": "5us",
          "link": "12GB/s", "latency": "10us", "memory": "8GiB", "streams": 2, "kernels": "cuda",
          "without": ["Unique"]})"));
  ASSERT_EQ(set.size(), 3);
  EXPECT_TRUE(set.devices[0].host_memory);
  EXPECT_EQ(set.devices[0].flops, 1e11);
  EXPECT_EQ(set.devices[0].kernel_class, "cpu");
  const DeviceModel& gpu = set.devices[2];
  EXPECT_EQ(gpu.name(), "/job:localhost/replica:0/task:0/device:GPU:2");
  EXPECT_FALSE(gpu.host_memory);
  EXPECT_EQ(gpu.flops, 1e13);
  EXPECT_EQ(gpu.memory_bandwidth, 5e11);
  EXPECT_DOUBLE_EQ(gpu.launch_overhead, 5e-6);
  EXPECT_EQ(gpu.link_bandwidth, 1.2e10);
  EXPECT_DOUBLE_EQ(gpu.link_latency, 1e-5);
  EXPECT_EQ(gpu.memory_bytes, std::size_t{8} << 30);
  EXPECT_EQ(gpu.streams, 2);
  EXPECT_EQ(gpu.kernel_class, "cuda");
  EXPECT_THAT(gpu.without, ElementsAre("Unique"));
  EXPECT_EQ(set.find("GPU:2"), 2);
  EXPECT_EQ(set.find("/job:localhost/replica:0/task:0/device:CPU:0"), 0);
  EXPECT_EQ(set.find("GPU:0"), -1);
}

TEST(DeviceSetTest, AThousandDevices) {
  const DeviceSet set = DeviceSet::parse_json(with(
      R"({"name": "GPU", "count": 1000, "flops": "1T", "bandwidth": "1GB/s", "link": "1GB/s"})"));
  EXPECT_EQ(set.size(), 1001);
  EXPECT_EQ(set.find("GPU:999"), 1000);
}

TEST(DeviceSetTest, CopiesTakeTheSlowerLinkOnce) {
  const DeviceSet set = DeviceSet::parse_json(
      with(R"({"name": "GPU:0", "flops": 1, "bandwidth": 1, "link": 100, "latency": "2s"},
              {"name": "GPU:1", "flops": 1, "bandwidth": 1, "link": 50, "latency": "1s"})"));
  EXPECT_EQ(set.copy_seconds(0, 0, 1000), 0);
  EXPECT_EQ(set.copy_seconds(0, 1, 1000), 12);
  EXPECT_EQ(set.copy_seconds(2, 0, 1000), 21);
  EXPECT_EQ(set.copy_seconds(1, 2, 1000), 22);
  // Cut from one physical device they exchange data in its memory.
  DeviceSet cut = set;
  cut.devices[1].physical = cut.devices[2].physical = 1;
  EXPECT_EQ(cut.copy_seconds(1, 2, 1000), 1000);
  EXPECT_EQ(cut.copy_seconds(0, 1, 1000), 12);
}

TEST(DeviceSetTest, MalformedIsRefusedByField) {
  const auto refusal = [](const std::string& text) {
    return refused([&] { DeviceSet::parse_json(text); });
  };
  EXPECT_THAT(refusal("{"), HasSubstr("device set: no JSON: parse error at line 1"));
  EXPECT_THAT(refusal(R"({"devices": [], "devices": []})"),
              HasSubstr("the key 'devices' is twice in one object"));
  EXPECT_THAT(refusal("[]"), HasSubstr("not an object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("needs a list 'devices'"));
  EXPECT_THAT(refusal(R"({"devices": []})"), HasSubstr("must be a CPU"));
  EXPECT_THAT(refusal(R"({"devices": [1]})"), HasSubstr("devices[0] must be an object"));
  EXPECT_THAT(refusal(R"({"devices": [], "device": 1})"), HasSubstr("unknown field 'device'"));
  const auto gpu = [&](const std::string& fields) {
    return refusal(
        with("{\"name\": \"GPU:0\", \"flops\": 1, \"bandwidth\": 1, \"link\": 1" + fields + "}"));
  };
  EXPECT_EQ(gpu(""), "nothing was thrown");
  EXPECT_THAT(gpu(R"(, "speed": 3)"), HasSubstr("devices[1] has an unknown field 'speed'"));
  EXPECT_THAT(gpu(R"(, "latency": "10 miles")"),
              HasSubstr("devices[1].latency is \"10 miles\" but must be such as \"10us\""));
  EXPECT_THAT(gpu(R"(, "latency": 10)"),
              HasSubstr("devices[1].latency is 10 but must be such as \"10us\""));
  EXPECT_THAT(gpu(R"(, "link": 2)"), HasSubstr("the key 'link' is twice in one object"));
  EXPECT_THAT(gpu(R"(, "overhead": "12")"), HasSubstr("devices[1].overhead is \"12\""));
  EXPECT_THAT(gpu(R"(, "memory": "12")"), HasSubstr("such as \"8GiB\""));
  EXPECT_THAT(refusal(with(R"({"name": "GPU:0", "flops": 1, "bandwidth": 1, "link": "12"})")),
              HasSubstr("devices[1].link is \"12\" but must be such as \"12GB/s\""));
  EXPECT_THAT(gpu(R"(, "memory": -1)"), HasSubstr("devices[1].memory"));
  EXPECT_THAT(gpu(R"(, "memory": "0B")"), HasSubstr("devices[1].memory is 0"));
  EXPECT_THAT(gpu(R"(, "memory": 1e30)"), HasSubstr("devices[1].memory is too large"));
  EXPECT_THAT(gpu(R"(, "count": 0)"), HasSubstr("devices[1].count"));
  EXPECT_THAT(gpu(R"(, "count": 1e9)"), HasSubstr("devices[1].count"));
  EXPECT_THAT(gpu(R"(, "streams": "two")"), HasSubstr("devices[1].streams"));
  EXPECT_THAT(gpu(R"(, "without": "Add")"), HasSubstr("devices[1].without must be a list"));
  EXPECT_THAT(refusal(with(R"({"name": "GPU:0", "bandwidth": 1, "link": 1})")),
              HasSubstr("devices[1] needs 'flops'"));
  EXPECT_THAT(refusal(with(R"({"name": "GPU:0", "flops": 1, "bandwidth": 1})")),
              HasSubstr("devices[1] needs 'link'"));
  EXPECT_THAT(refusal(with(R"({"name": "", "flops": 1, "bandwidth": 1})")),
              HasSubstr("devices[1].name"));
  EXPECT_THAT(refusal(with(R"({"name": "/foo:0", "flops": 1, "bandwidth": 1})")),
              HasSubstr("devices[1].name: Unknown attribute"));
  EXPECT_THAT(refusal(with(kHost)), HasSubstr("is there twice"));
}

}  // namespace
}  // namespace tandem::schedule_test
