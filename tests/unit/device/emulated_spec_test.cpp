#include "tandem/device/emulated/emulated_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EmulatedSpec one(std::string_view text) {
  const auto specs = EmulatedSpec::parse(text);
  EXPECT_EQ(specs.size(), 1u);
  return specs.at(0);
}

TEST(EmulatedSpec, HasDefaults) {
  const EmulatedSpec spec = one("GPU:2");
  EXPECT_EQ(spec.type, "GPU");
  EXPECT_EQ(spec.count, 2);
  EXPECT_EQ(spec.memory, std::size_t{1} << 30);
  EXPECT_DOUBLE_EQ(spec.link, 12e9);
  EXPECT_DOUBLE_EQ(spec.latency, 10e-6);
  EXPECT_EQ(spec.streams, 1);
  EXPECT_FALSE(spec.timed);
  EXPECT_TRUE(spec.without.empty());
  EXPECT_EQ(spec.fault, EmulatedFaults{});
  EXPECT_TRUE(EmulatedSpec::parse("").empty());
  EXPECT_TRUE(EmulatedSpec::parse("  ").empty());
}

TEST(EmulatedSpec, ReadsEveryKey) {
  const EmulatedSpec spec = one(
      "tpu:3,memory=512MiB,link=1.5GB/s,latency=2ms,streams=4,compute=timed,flops=2.5T,"
      "bandwidth=300MB/s,class=x,without=Conv2D|_FusedMatMul,fault=lost@7|oom@8|slow@2.5|stall@9");
  EXPECT_EQ(spec.type, "TPU");
  EXPECT_EQ(spec.count, 3);
  EXPECT_EQ(spec.memory, std::size_t{512} << 20);
  EXPECT_DOUBLE_EQ(spec.link, 1.5e9);
  EXPECT_DOUBLE_EQ(spec.latency, 2e-3);
  EXPECT_EQ(spec.streams, 4);
  EXPECT_TRUE(spec.timed);
  EXPECT_DOUBLE_EQ(spec.flops, 2.5e12);
  EXPECT_DOUBLE_EQ(spec.bandwidth, 3e8);
  EXPECT_THAT(spec.without, ElementsAre("Conv2D", "_FusedMatMul"));
  EXPECT_EQ(spec.kernel_class, "x");
  EXPECT_EQ(spec.fault.lost_at, 7u);
  EXPECT_EQ(spec.fault.oom_at, 8u);
  EXPECT_EQ(spec.fault.stall_at, 9u);
  EXPECT_DOUBLE_EQ(spec.fault.slow, 2.5);
  EXPECT_EQ(one(spec.to_string()), spec);
}

TEST(EmulatedSpec, ReadsEveryUnit) {
  EXPECT_EQ(one("GPU:1,memory=4096B").memory, 4096u);
  EXPECT_EQ(one("GPU:1,memory=3KiB").memory, 3072u);
  EXPECT_EQ(one("GPU:1,memory=0.5MiB").memory, std::size_t{1} << 19);
  EXPECT_EQ(one("GPU:1,memory=80GiB").memory, std::size_t{80} << 30);
  EXPECT_DOUBLE_EQ(one("GPU:1,link=5B/s").link, 5);
  EXPECT_DOUBLE_EQ(one("GPU:1,link=5KB/s").link, 5e3);
  EXPECT_DOUBLE_EQ(one("GPU:1,link=5MB/s").link, 5e6);
  EXPECT_DOUBLE_EQ(one("GPU:1,link=5GB/s").link, 5e9);
  EXPECT_DOUBLE_EQ(one("GPU:1,latency=0us").latency, 0);
  EXPECT_DOUBLE_EQ(one("GPU:1,latency=7us").latency, 7e-6);
  EXPECT_DOUBLE_EQ(one("GPU:1,latency=1s").latency, 1);
  EXPECT_DOUBLE_EQ(one("GPU:1,flops=5K").flops, 5e3);
  EXPECT_DOUBLE_EQ(one("GPU:1,flops=5M").flops, 5e6);
  EXPECT_DOUBLE_EQ(one("GPU:1,flops=5G").flops, 5e9);
  EXPECT_DOUBLE_EQ(one("GPU:1,flops=5000").flops, 5e3);
}

TEST(EmulatedSpec, ReadsSeveral) {
  const auto specs = EmulatedSpec::parse(" GPU:2 , memory=1MiB ; NPU : 1,compute=real");
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].memory, std::size_t{1} << 20);
  EXPECT_EQ(specs[1].type, "NPU");
  EXPECT_EQ(EmulatedSpec::parse(specs[1].to_string()).at(0), specs[1]);
}

struct Malformed {
  const char* text;
  const char* said;
};

class MalformedSpec : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedSpec, IsAnErrorThatNamesTheVariableAndWhatIsWrong) {
  try {
    EmulatedSpec::parse(GetParam().text);
    ADD_FAILURE() << GetParam().text << " was taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("TANDEM_EMULATE: "));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().said));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().text));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, MalformedSpec,
    ::testing::Values(
        Malformed{"GPU", "no count"}, Malformed{":2", "device type"},
        Malformed{"GPU:", "count of devices from 1"}, Malformed{"GPU:0", "not \"0\""},
        Malformed{"GPU:-1", "not \"-1\""}, Malformed{"GPU:two", "not \"two\""},
        Malformed{"GPU:99999", "to 4096"}, Malformed{"GPU:18446744073709551617", "count"},
        Malformed{"CPU:2", "CPU is the host"},
        Malformed{"job:1", "\"job\" is a part of each device's name"},
        Malformed{"Replica:1", "a part of"}, Malformed{"TASK:1", "a part of"},
        Malformed{"device:2,memory=1MiB", "a part of"}, Malformed{"physical_device:1", "a part of"},
        Malformed{"G-U:1", "device type, not \"G-U\""},
        Malformed{"GPU:1;", "device type, not \"\""}, Malformed{";GPU:1", "device type"},
        Malformed{"GPU:1,", "key=value, not \"\""}, Malformed{"GPU:1,memory", "key=value"},
        Malformed{"GPU:1,memory=", "key \"memory\" takes a size"},
        Malformed{"GPU:1,memory=1GB", "not \"1GB\""}, Malformed{"GPU:1,memory=1024", "a size"},
        Malformed{"GPU:1,memory=-1MiB", "a size"}, Malformed{"GPU:1,memory=0B", "a size"},
        Malformed{"GPU:1,memory=1e30GiB", "a size"}, Malformed{"GPU:1,memory=nanB", "a size"},
        Malformed{"GPU:1,memory=1MiBx", "a size"},
        Malformed{"GPU:1,memory=1MiB,memory=2MiB", "\"memory\" stands twice"},
        Malformed{"GPU:1,link=12", "a rate"}, Malformed{"GPU:1,link=12GiB/s", "a rate"},
        Malformed{"GPU:1,link=0GB/s", "a rate above 0"}, Malformed{"GPU:1,link=infB/s", "a rate"},
        Malformed{"GPU:1,latency=10", "a time"}, Malformed{"GPU:1,latency=10ns", "a time"},
        Malformed{"GPU:1,latency=2000000s", "at most an hour"},
        Malformed{"GPU:1,streams=0", "a count from 1"}, Malformed{"GPU:1,streams=1.5", "a count"},
        Malformed{"GPU:1,streams=1000", "a count"},
        Malformed{"GPU:1,compute=fast", "real or timed"},
        Malformed{"GPU:1,flops=0", "a number above 0"}, Malformed{"GPU:1,flops=1X", "a number"},
        Malformed{"GPU:1,flops=T", "a number"}, Malformed{"GPU:1,bandwidth=1Tb/s", "a rate"},
        Malformed{"GPU:1,without=", "op names"}, Malformed{"GPU:1,without=A||B", "op names"},
        Malformed{"GPU:1,fault=lost", "lost@N"}, Malformed{"GPU:1,fault=lost@0", "lost@N"},
        Malformed{"GPU:1,fault=lost@x", "lost@N"}, Malformed{"GPU:1,fault=burnt@1", "lost@N"},
        Malformed{"GPU:1,fault=slow@0.5", "F at least 1"},
        Malformed{"GPU:1,fault=oom@1|", "lost@N"},
        Malformed{"GPU:1,fault=oom@1|oom@2", "each kind once"},
        Malformed{"GPU:1,colour=red", "unknown key \"colour\""}));

TEST(EmulatedSpec, ChecksWhatAProgramSays) {
  EmulatedSpec spec;
  spec.validate();
  spec.link = -1;
  try {
    spec.validate();
    ADD_FAILURE() << "a negative rate was taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("emulate: key \"link\""));
  }
  EXPECT_THROW(EmulatedSpec{.count = 0}.validate(), InvalidArgumentError);
  EXPECT_THROW(EmulatedSpec{.type = "a,b"}.validate(), InvalidArgumentError);
  EXPECT_THROW(EmulatedSpec{.flops = 0.0 / 1}.validate(), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
