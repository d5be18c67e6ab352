#include "tandem/device/device_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"

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
  EXPECT_THAT(refused("/device:CPU:x"), HasSubstr("invalid literal for int() with base 10: 'x'"));
  EXPECT_THAT(refused("/job:w/task:a"), HasSubstr("invalid literal for int() with base 10: 'a'"));
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
  EXPECT_EQ(merged("/GPU:*", "/CPU:3"), "/device:GPU:*") << "an index belongs to its type";
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

}  // namespace
}  // namespace tandem
