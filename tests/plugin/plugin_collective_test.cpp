// Collectives between the devices of plugins: by the plugin where it has them, else in host memory.

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/device/memory_space.h"
#include "tandem/device/plugin_backend.h"
#include "tandem/graph/local_collectives.h"
#include <tandem/tandem.h>

namespace tandem {
namespace {

int ask(const char* function) {
  void* library = dlopen(TANDEM_COMMUNICATING_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<int (*)()>(dlsym(library, function))();
}
int computed() { return ask("communicating_computed"); }

Tensor reduce(const Tensor& x, const std::string& merge) {
  return call("CollectiveReduceV2", {x, Tensor(2), Tensor(1), Tensor(1)},
              {{"merge_op", merge}, {"final_op", std::string("Id")}})[0];
}

Tensor gather(const Tensor& x) {
  return call("CollectiveGatherV2", {x, Tensor(2), Tensor(1), Tensor(2)})[0];
}

// Both devices' results, the one behind the other.
template <class Body>
auto between(const std::string& type, Body body) {
  return function([=](const Tensor& x, const Tensor& y) {
    std::vector<Tensor> results;
    for (const int i : {0, 1}) {
      const DeviceScope on("/device:" + type + ":" + std::to_string(i));
      results.push_back(body(i == 0 ? x : y));
    }
    const DeviceScope host("/CPU:0");
    return concat(results, 0);
  });
}

const Tensor& x() {
  static const Tensor value{1.0f, 2.0f};
  return value;
}
const Tensor& y() {
  static const Tensor value{10.0f, -20.0f};
  return value;
}

class PluginCollectives : public ::testing::Test {
 protected:
  Runtime runtime_{Runtime::Options{.devices = {.plugins = {TANDEM_COMMUNICATING_PLUGIN}}}};
  RuntimeScope scope_{runtime_};
};

TEST_F(PluginCollectives, StayOnTheDevices) {
  const auto sum = between("TALKER", [](const Tensor& v) { return reduce(v, "Add"); });
  const auto all = between("TALKER", [](const Tensor& v) { return gather(v); });
  const int before = computed();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(sum(x(), y()).to_vector<float>(), (std::vector<float>{11, -18, 11, -18}));
    EXPECT_EQ(all(x(), y()).to_vector<float>(), (std::vector<float>{1, 2, 10, -20, 1, 2, 10, -20}));
  }
  EXPECT_EQ(computed() - before, 10);
  EXPECT_EQ(ask("communicating_communicators"), 1);
}

TEST_F(PluginCollectives, ThatThePluginHasNotMeetOnTheHost) {
  const auto most = between("TALKER", [](const Tensor& v) { return reduce(v, "Max"); });
  const int before = computed();
  EXPECT_EQ(most(x(), y()).to_vector<float>(), (std::vector<float>{10, 2, 10, 2}));
  EXPECT_EQ(computed(), before);
}

// The member that waits for the lost device's gets its error too.
TEST_F(PluginCollectives, EndWithALostDevice) {
  std::vector<Device*> devices;
  for (const auto& device : runtime_.devices()) {
    if (device->type() == "TALKER") devices.push_back(device.get());
  }
  ASSERT_EQ(devices.size(), 2u);
  const int before = computed();
  LocalCollectives group;
  std::vector<Code> codes;
  const auto join = [&](Device* device, const Array& input) {
    group.all_reduce({.key = "k", .group_size = 2, .device = device, .memory = device}, input,
                     Collectives::Reduction::kSum,
                     [&](const std::exception_ptr& error, const Array&) {
                       codes.push_back(error ? code_of(error) : Code::kOk);
                     });
  };
  const Array first = allocate_on(*devices[0], DType::kFloat, Shape{4});
  const Array second = allocate_on(*devices[1], DType::kFloat, Shape{4});
  join(devices[0], first);
  lose_plugin_device(*devices[1]);
  join(devices[1], second);
  EXPECT_EQ(codes, (std::vector<Code>{Code::kUnavailable, Code::kUnavailable}));
  EXPECT_EQ(computed(), before);
}

TEST(PluginsOfVersionsBeforeCollectives, MeetOnTheHost) {
  const char* folder = std::getenv("TANDEM_TEST_PLUGINS");
  Runtime runtime(
      {.devices = {.plugins = {std::string(folder ? folder : ".") + "/libtoy_device.so"}}});
  const RuntimeScope scope(runtime);
  const auto sum = between("TOY", [](const Tensor& v) { return reduce(v, "Add"); });
  EXPECT_EQ(sum(x(), y()).to_vector<float>(), (std::vector<float>{11, -18, 11, -18}));
}

// Those of the devices that are gone.
TEST(PluginsCommunicators, GoWithTheirDevices) { EXPECT_EQ(ask("communicating_communicators"), 0); }

}  // namespace
}  // namespace tandem
