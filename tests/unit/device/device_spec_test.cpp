#include "tandem/device/device_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/device/device_types.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

std::string canonical(const std::string& name) { return DeviceSpec::parse(name).to_string(); }

std::string refused(const std::string& name) {
  try {
    DeviceSpec::parse(name);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(DeviceSpec, TakesEveryFormThatTensorFlowTakes) {
  const std::pair<const char*, const char*> forms[] = {
      {"/CPU", "/device:CPU:*"},
      {"cpu", "/device:CPU:*"},
      {"/gpu:*", "/device:GPU:*"},
      {"/cpu:1", "/device:CPU:1"},
      {"cpu:1", "/device:CPU:1"},
      {"/CPU:1", "/device:CPU:1"},
      {"CPU:1", "/device:CPU:1"},
      {"/device:CPU:1", "/device:CPU:1"},
      {"/device:cpu:1", "/device:CPU:1"},
      {"/device:CPU:*", "/device:CPU:*"},
      {"/device:XPU:0", "/device:XPU:0"},
      {"/device:*", ""},
      {"//", ""},
      {"", ""},
      {"/job:ps/task:1/cpu:3", "/job:ps/task:1/device:CPU:3"},
      {"/cpu:3/task:1/job:ps", "/job:ps/task:1/device:CPU:3"},
      {"/job:localhost/replica:0/task:0/device:GPU:7",
       "/job:localhost/replica:0/task:0/device:GPU:7"},
      {"/replica:1/replica:2", "/replica:2"},
      {"/job:", "/job:"},
      {"/job:*", "/job:*"},
      {"/Gpu:1", "/device:GPU:1"},
      {"/tpu:0", "/device:TPU:0"},
      {"/GPU:01", "/device:GPU:1"},
      {"GPU", "/device:GPU:*"},
      {"XPU:0", "/device:XPU:0"},
  };
  for (const auto& [name, wanted] : forms) EXPECT_EQ(canonical(name), wanted) << name;
}

TEST(DeviceSpec, RefusesInTensorFlowsWords) {
  EXPECT_THAT(
      refused("/foo:0"),
      HasSubstr("Unknown attribute 'foo' is encountered while parsing the device spec: '/foo:0'."));
  EXPECT_THAT(
      refused("/cpu:0/gpu:0"),
      HasSubstr(
          "Multiple device types are not allowed while parsing the device spec: /cpu:0/gpu:0."));
  EXPECT_THAT(refused("GPU:-1"),
              HasSubstr("'-1' is not the number of a job's task, a replica or a "
                        "device. A device name looks like \"GPU:0\", or in full"));
  EXPECT_THAT(refused("/job:w/task:a"), HasSubstr("'a' is not the number of a job's task"));
  for (const char* name :
       {"/replica:-1", "/task:", "/task:99999999999", "/device:CPU:1.5", "/cpu:0:1",
        "/device:CPU:0:1", "/job", "/job:a:b", "/device", "/device:", "/device::0", " /cpu:0",
        "/replica:", "/task:*", "/XPU:0", "xpu:0", "/cpu:", "/device:CPU:0/device:CPU:0"}) {
    EXPECT_NE(refused(name), "nothing was thrown") << name;
  }
}

TEST(DeviceSpec, InnerFieldsWin) {
  const auto merged = [](const char* inner, const char* outer) {
    return DeviceSpec::parse(inner).merged_into(DeviceSpec::parse(outer)).to_string();
  };
  EXPECT_EQ(merged("/job:w", "/job:ps/task:1/device:CPU:3"), "/job:w/task:1/device:CPU:3");
  EXPECT_EQ(merged("/GPU:1", "/job:w/task:2/CPU:0"), "/job:w/task:2/device:GPU:1");
  EXPECT_EQ(merged("/GPU:*", "/CPU:3"), "/device:GPU:3") << "as make_merged_spec does";
  EXPECT_EQ(merged("/GPU", "/job:w/replica:1/CPU:3"), "/job:w/replica:1/device:GPU:3");
  EXPECT_EQ(merged("/task:2", "/job:ps/task:1"), "/job:ps/task:2");
  EXPECT_EQ(merged("/job:b", "/job:a"), "/job:b");
  EXPECT_EQ(merged("", "/CPU:3"), "/device:CPU:3");
  EXPECT_EQ(merged("/CPU:3", ""), "/device:CPU:3");
}

TEST(DeviceSpec, MatchesWhatItSays) {
  const auto full = DeviceSpec::parse("/job:localhost/replica:0/task:0/device:GPU:1");
  for (const char* partial : {"", "/GPU:1", "/GPU", "/job:localhost", "/task:0/device:GPU:*"}) {
    EXPECT_TRUE(DeviceSpec::parse(partial).matches(full)) << partial;
  }
  for (const char* other : {"/GPU:0", "/CPU", "/job:w", "/task:1/GPU:1"}) {
    EXPECT_FALSE(DeviceSpec::parse(other).matches(full)) << other;
  }
  EXPECT_TRUE(DeviceSpec::parse("//").empty());
  EXPECT_FALSE(full.empty());
  EXPECT_EQ(full, DeviceSpec::parse(full.to_string()));
}

TEST(DeviceSpec, TypesOfDevicesThatThereAreNeedNoPrefix) {
  EXPECT_NE(refused("/NpuOfTest:0"), "nothing was thrown");
  EXPECT_EQ(canonical("/device:NpuOfTest:0"), "/device:NPUOFTEST:0");
  add_device_type("NpuOfTest");
  add_device_type("NPUOFTEST");
  EXPECT_EQ(canonical("/NpuOfTest:0"), "/device:NpuOfTest:0") << "spelt as it was made known";
  EXPECT_EQ(canonical("npuoftest:1"), "/device:NpuOfTest:1");
  EXPECT_EQ(canonical("/device:npuoftest:*"), "/device:NpuOfTest:*");
  EXPECT_EQ(known_device_type("Xpu"), std::nullopt);
}

// The table of TensorFlow's behaviour, row by row: what was parsed, its canonical form.
TEST(DeviceSpec, AgreesWithTensorFlow) {
  EXPECT_EQ(canonical("/job:ps/task:1/cpu:3"), "/job:ps/task:1/device:CPU:3");
  EXPECT_EQ(DeviceSpec::parse("/job:w")
                .merged_into(DeviceSpec::parse("/job:ps/task:1/cpu:3"))
                .to_string(),
            "/job:w/task:1/device:CPU:3");
  EXPECT_EQ(canonical("/job:client/replica:0/task:0/device:CPU:0"),
            "/job:client/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(canonical("/job:x/CPU:0"), "/job:x/device:CPU:0");
  for (const char* same : {"/cpu:1", "cpu:1", "/CPU:1", "/device:CPU:1"})
    EXPECT_EQ(DeviceSpec::parse(same), DeviceSpec::parse("/device:CPU:1")) << same;
}

}  // namespace
}  // namespace tandem
