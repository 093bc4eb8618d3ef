// base/cgroup_test.cc
// Trees as the kernel shows them to a service, a container and a machine with version 1, and trees
// that no kernel writes. Files are made in a scratch folder, which stands for the root.
#include "base/cgroup.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"

namespace plumb::base {
namespace {

constexpr char kUnified[] = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

class Cgroup : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) {
    const std::filesystem::path whole = scratch_.path() + path;
    std::filesystem::create_directories(whole.parent_path());
    ASSERT_TRUE(WriteFileAtomic(whole.string(), content).ok()) << path;
  }
  void Tables(const std::string& groups, const std::string& mounts) {
    Write("/proc/self/cgroup", groups);
    Write("/proc/self/mountinfo", "22 1 8:1 / / rw,relatime - ext4 /dev/root rw\n" + mounts);
  }
  CgroupLimits Read() const { return ReadCgroupLimits(scratch_.path()); }

  ScratchFolder scratch_;
};

TEST_F(Cgroup, WithoutFilesThereIsNoLimit) {
  EXPECT_EQ(Read().processors, std::nullopt);
  EXPECT_EQ(Read().memory_left_bytes, std::nullopt);
  Tables("0::/\n", kUnified);  // the root of version 2 has no such files
  EXPECT_EQ(Read().processors, std::nullopt);
  EXPECT_EQ(Read().memory_left_bytes, std::nullopt);
}

TEST_F(Cgroup, AContainerSeesItsOwnGroupAsTheRoot) {
  Tables("0::/\n", kUnified);
  Write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  Write("/sys/fs/cgroup/memory.max", "1000000\n");
  Write("/sys/fs/cgroup/memory.current", "400000\n");
  EXPECT_EQ(Read().processors, 1.5);
  EXPECT_EQ(Read().memory_left_bytes, 600000u);
}

TEST_F(Cgroup, TheLeastOfAllAncestorsBinds) {
  Tables("0::/system.slice/plumb.service\n", kUnified);
  const std::string slice = "/sys/fs/cgroup/system.slice", service = slice + "/plumb.service";
  Write(service + "/cpu.max", "400000 100000\n");
  Write(slice + "/cpu.max", "200000 100000\n");
  Write(service + "/memory.max", "9000\n");
  Write(service + "/memory.current", "1000\n");
  Write(slice + "/memory.max", "10000\n");
  Write(slice + "/memory.current", "7000\n");  // of others too
  EXPECT_EQ(Read().processors, 2.0);
  EXPECT_EQ(Read().memory_left_bytes, 3000u);
  Write(service + "/cpu.max", "50000 100000\n");
  Write(slice + "/cpu.max", "max 100000\n");
  Write(slice + "/memory.max", "max\n");
  EXPECT_EQ(Read().processors, 0.5);
  EXPECT_EQ(Read().memory_left_bytes, 8000u);
}

TEST_F(Cgroup, OfVersionOneEachControllerHasItsOwnTree) {
  Tables("9:name=systemd:/\n4:memory:/app/one\n3:cpuset:/\n2:cpu,cpuacct:/app\n0::/\n",
         "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
         "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
         "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
         "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  const std::string cpu = "/sys/fs/cgroup/cpu,cpuacct", memory = "/sys/fs/cgroup/memory";
  Write(cpu + "/cpu.cfs_quota_us", "-1\n");
  Write(cpu + "/cpu.cfs_period_us", "100000\n");
  Write(cpu + "/app/cpu.cfs_quota_us", "300000\n");
  Write(cpu + "/app/cpu.cfs_period_us", "50000\n");
  Write(memory + "/memory.limit_in_bytes", "9223372036854771712\n");
  Write(memory + "/app/memory.limit_in_bytes", "5000\n");
  Write(memory + "/app/memory.usage_in_bytes", "6000\n");
  Write(memory + "/app/one/memory.limit_in_bytes", "4000\n");
  EXPECT_EQ(Read().processors, 6.0);
  EXPECT_EQ(Read().memory_left_bytes, 0u) << "more is in use than is granted";
}

TEST_F(Cgroup, CachedFilesAreNotInUse) {
  Tables("0::/\n", kUnified);
  Write("/sys/fs/cgroup/memory.max", "1000000\n");
  Write("/sys/fs/cgroup/memory.current", "900000\n");
  const std::string stat = "/sys/fs/cgroup/memory.stat";
  Write(stat, "anon 100000\ninactive_file 300000\nactive_file 200000\nfile 700000\n");
  EXPECT_EQ(Read().memory_left_bytes, 600000u);
  for (const char* none : {"", "inactive_file", "inactive_file x\n", "total_inactive_file 5\n",
                           "xinactive_file 5\n", "inactive_file -5\n"}) {
    Write(stat, none);
    EXPECT_EQ(Read().memory_left_bytes, 100000u) << none;
  }
  for (const char* many :
       {"active_file 999999999\n", "active_file 18446744073709551615\ninactive_file 9\n"}) {
    Write(stat, many);
    EXPECT_EQ(Read().memory_left_bytes, 1000000u) << many;
  }
  Tables("4:memory:/\n", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  const std::string memory = "/sys/fs/cgroup/memory";
  Write(memory + "/memory.limit_in_bytes", "5000\n");
  Write(memory + "/memory.usage_in_bytes", "4000\n");
  Write(memory + "/memory.stat",
        "inactive_file 9\ntotal_inactive_file 2000\ntotal_active_file 1\n");
  EXPECT_EQ(Read().memory_left_bytes, 3001u);
}

// A container without a namespace of its own: the path is the host's, the mount begins inside it.
TEST_F(Cgroup, PathsAreReadFromWhereTheMountBegins) {
  Tables("0::/docker/abc/inner\n",
         "30 23 0:26 /docker/abc /sys/fs/my\\040cgroup rw - cgroup2 cgroup2 rw\n");
  Write("/sys/fs/my cgroup/inner/cpu.max", "100000 100000\n");
  Write("/sys/fs/my cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(Read().processors, 1.0);
  for (const char* outside : {"0::/docker/abcd/inner\n", "0::/../inner\n", "0::/docker\n",
                              "0::inner\n", "0::/docker/abc/../../inner\n"}) {
    Write("/proc/self/cgroup", outside);
    EXPECT_EQ(Read().processors, 3.0) << outside;
  }
}

TEST_F(Cgroup, ContentThatMakesNoSenseIsNoLimit) {
  Tables("0::/\n", kUnified);
  for (const std::string& text :
       {std::string(), std::string("max"), std::string("max 100000"), std::string("0 100000"),
        std::string("100000 0"), std::string("100000"), std::string("-5 100000"),
        std::string("1e9 1"), std::string("99999999999999999999 1"),
        std::string("18446744073709551615 1"), std::string("nan nan"), std::string("\0 \0", 3),
        std::string(300, '1'), std::string(100000, ' ')}) {
    Write("/sys/fs/cgroup/cpu.max", text);
    Write("/sys/fs/cgroup/memory.max", "x" + text);
    EXPECT_EQ(Read().processors, std::nullopt) << text.substr(0, 40);
    EXPECT_EQ(Read().memory_left_bytes, std::nullopt) << text.substr(0, 40);
  }
  Write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  for (const std::string& groups :
       {std::string("\n\n0::"), std::string(":::::"), std::string(1u << 20, ':'),
        "0::/" + std::string(100000, 'a'), "0::" + std::string(100000, '/')}) {
    Write("/proc/self/cgroup", groups);
    const auto processors = Read().processors;
    EXPECT_TRUE(!processors || *processors == 2.0) << groups.substr(0, 40);
  }
  for (const std::string& mounts :
       {std::string("-"), std::string(100000, ' '), std::string(100000, '\\'),
        std::string("30 23 0:26 / /x\\04 - cgroup2")}) {
    Write("/proc/self/mountinfo", mounts);
    EXPECT_EQ(Read().processors, std::nullopt) << mounts.substr(0, 40);
  }
}

TEST_F(Cgroup, ATableThatIsTooLongIsNotRead) {
  Tables("0::/\n", kUnified);
  Write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  ASSERT_EQ(Read().processors, 2.0);
  Write("/proc/self/mountinfo", kUnified + std::string(5u << 20, '\n'));
  EXPECT_EQ(Read().processors, std::nullopt);
}

TEST(CgroupHere, IsReadWithoutHarm) {
  const CgroupLimits limits = ReadCgroupLimits();
  EXPECT_GT(limits.processors.value_or(1), 0);
}

}  // namespace
}  // namespace plumb::base
