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
  // On a machine of eight processors.
  ResourceLimits limits() const { return read_resource_limits(folder_.file(""), 8); }

 private:
  Folder folder_;
};

TEST(ResourceLimits, AreTheMachinesWithoutGroups) {
  const ResourceLimits limits = FakeRoot().limits();
  EXPECT_GT(limits.memory, 1u << 20);
  EXPECT_EQ(limits.processors, 8);
  EXPECT_FALSE(limits.memory_from_cgroup);
  EXPECT_FALSE(limits.processors_of_group);
}

TEST(ResourceLimits, AreTheSmallestOfTheGroupsAround) {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/pods/pod1/main");
  root.write("sys/fs/cgroup/pods/pod1/main/memory.max", "max");
  root.write("sys/fs/cgroup/pods/pod1/memory.max", "67108864");
  root.write("sys/fs/cgroup/pods/memory.max", "134217728");
  const ResourceLimits limits = root.limits();
  EXPECT_EQ(limits.memory, 67108864u);
  EXPECT_TRUE(limits.memory_from_cgroup);
}

TEST(ResourceLimits, OfAContainerLieInTheRootOfWhatItSees) {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/");
  root.write("sys/fs/cgroup/memory.max", "67108864");
  root.write("sys/fs/cgroup/cpu.max", "50000 100000");
  const ResourceLimits limits = root.limits();
  EXPECT_EQ(limits.memory, 67108864u);
  EXPECT_EQ(limits.processors, 1);
  EXPECT_TRUE(limits.processors_of_group);
}

TEST(ResourceLimits, ProcessorTimeIsRoundedUp) {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/");
  root.write("sys/fs/cgroup/cpu.max", "150000 100000");
  EXPECT_EQ(root.limits().processors, 2);
  EXPECT_TRUE(root.limits().processors_of_group);
  for (const char* enough : {"800000 100000", "750000 100000"}) {
    root.write("sys/fs/cgroup/cpu.max", enough);
    EXPECT_EQ(root.limits().processors, 8) << enough;
    EXPECT_FALSE(root.limits().processors_of_group) << enough;
  }
}

TEST(ResourceLimits, AreReadFromEitherVersion) {
  FakeRoot root;
  root.write("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n0::/");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "67108864");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "20000");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  const ResourceLimits limits = root.limits();
  EXPECT_EQ(limits.memory, 67108864u);
  EXPECT_EQ(limits.processors, 1);
}

TEST(ResourceLimits, AreFoundWhereSystemsMountThem) {
  FakeRoot mixed;
  mixed.write("proc/self/cgroup", "0::/job");
  mixed.write("sys/fs/cgroup/unified/job/memory.max", "67108864");
  EXPECT_EQ(mixed.limits().memory, 67108864u);
  FakeRoot joined;
  joined.write("proc/self/cgroup", "5:cpu,cpuacct:/job");
  joined.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "200000");
  joined.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(joined.limits().processors, 2);
}

TEST(ResourceLimits, OfGroupsOutsideAreNotThisProcess) {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/../other");
  root.write("sys/fs/cgroup/memory.max", "67108864");
  EXPECT_FALSE(root.limits().memory_from_cgroup);
}

TEST(ResourceLimits, GroupsThatLimitNothingOrAreBrokenAreNone) {
  FakeRoot root;
  root.write("proc/self/cgroup", "nonsense\n5:cpu:/job\n0::job/a\n0::/job");
  root.write("sys/fs/cgroup/job/memory.max", "-5");
  root.write("sys/fs/cgroup/memory.max", "");
  root.write("sys/fs/cgroup/job/cpu.max", "max 100000");
  root.write("sys/fs/cgroup/cpu.max", "10000000000 0");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  const ResourceLimits limits = root.limits();
  EXPECT_FALSE(limits.memory_from_cgroup);
  EXPECT_FALSE(limits.processors_of_group);
}

}  // namespace
}  // namespace tandem
