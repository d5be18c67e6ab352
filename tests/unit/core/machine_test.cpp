#include "tandem/core/machine.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/folder.h"

namespace tandem {
namespace {

// A file system of which /proc and /sys are looked at.
class FakeRoot {
 public:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.file(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  MachineLimits limits() const { return machine_limits(folder_.file("")); }

 private:
  Folder folder_;
};

TEST(MachineLimits, AreTheMachinesWithoutGroups) {
  const MachineLimits limits = FakeRoot().limits();
  EXPECT_GT(limits.memory, 1u << 20);
  EXPECT_GE(limits.processors, 1);
  EXPECT_FALSE(limits.memory_of_group);
  EXPECT_FALSE(limits.processors_of_group);
}

TEST(MachineLimits, AreTheSmallestOfTheGroupsAround) {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/pods/pod1/main");
  root.write("sys/fs/cgroup/pods/pod1/main/memory.max", "max");
  root.write("sys/fs/cgroup/pods/pod1/memory.max", "67108864");
  root.write("sys/fs/cgroup/pods/memory.max", "134217728");
  const MachineLimits limits = root.limits();
  EXPECT_EQ(limits.memory, 67108864u);
  EXPECT_TRUE(limits.memory_of_group);
}

TEST(MachineLimits, OfAContainerLieInTheRootOfWhatItSees) {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/");
  root.write("sys/fs/cgroup/memory.max", "67108864");
  root.write("sys/fs/cgroup/cpu.max", "50000 100000");
  const MachineLimits limits = root.limits();
  EXPECT_EQ(limits.memory, 67108864u);
  EXPECT_EQ(limits.processors, 1);
}

TEST(MachineLimits, AreReadFromEitherVersion) {
  FakeRoot root;
  root.write("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n0::/");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "67108864");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "20000");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  const MachineLimits limits = root.limits();
  EXPECT_EQ(limits.memory, 67108864u);
  EXPECT_EQ(limits.processors, 1);
}

TEST(MachineLimits, GroupsThatLimitNothingOrAreBrokenAreNone) {
  FakeRoot root;
  root.write("proc/self/cgroup", "nonsense\n5:cpu:/job\n0::/job");
  root.write("sys/fs/cgroup/job/memory.max", "-5");
  root.write("sys/fs/cgroup/memory.max", "");
  root.write("sys/fs/cgroup/job/cpu.max", "max 100000");
  root.write("sys/fs/cgroup/cpu.max", "10000000000 0");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  const MachineLimits limits = root.limits();
  EXPECT_FALSE(limits.memory_of_group);
  EXPECT_FALSE(limits.processors_of_group);
}

}  // namespace
}  // namespace tandem
