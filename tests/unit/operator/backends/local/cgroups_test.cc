// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/cgroups.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "common/base/files.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

TEST(FindCgroups, ReadsVersion1) {
  const CgroupPlaces places = FindCgroups(
      "35 28 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
      "36 28 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "37 28 0:32 / /proc rw - proc proc rw\n",
      "4:memory:/jobs/a\n3:cpu,cpuacct:/jobs\n0::/\n");
  EXPECT_EQ(places, (CgroupPlaces{"", "/", "/sys/fs/cgroup/cpu,cpuacct", "/jobs",
                                  "/sys/fs/cgroup/memory", "/jobs/a"}));
}

TEST(FindCgroups, ReadsVersion2) {
  const CgroupPlaces places = FindCgroups(
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
      "0::/user.slice/session.scope\n");
  EXPECT_EQ(places, (CgroupPlaces{"/sys/fs/cgroup", "/user.slice/session.scope", "", "", "", ""}));
}

TEST(FindCgroups, TakesAnything) {
  EXPECT_EQ(FindCgroups("", ""), CgroupPlaces{});
  EXPECT_EQ(FindCgroups(" - \n - cgroup\nx - cgroup2 a b", ":\n::\nabc\n1:\n"), CgroupPlaces{});
}

TEST(Cgroup, WritesVersion2Files) {
  const std::string folder = MakeTempDir();
  Cgroup group(2, folder, folder);
  ASSERT_TRUE(group.SetMilliCpu(250).ok());
  ASSERT_TRUE(group.SetMemoryMib(64).ok());
  EXPECT_EQ(*ReadFile(folder + "/cpu.max"), "5000 20000");
  EXPECT_EQ(*ReadFile(folder + "/memory.max"), "67108864");
  EXPECT_EQ(group.ProcessFiles(), std::vector<std::string>{folder + "/cgroup.procs"});
  EXPECT_EQ(group.OutOfMemoryKills(), 0);
  ASSERT_TRUE(WriteFileAtomically(folder + "/memory.events", "low 0\noom 3\noom_kill 2\n").ok());
  EXPECT_EQ(group.OutOfMemoryKills(), 2);
}

TEST(Cgroup, WritesVersion1Files) {
  const std::string cpu = MakeTempDir();
  const std::string memory = MakeTempDir();
  Cgroup group(1, cpu, memory);
  ASSERT_TRUE(group.SetMilliCpu(1500).ok());
  ASSERT_TRUE(group.SetMemoryMib(0).ok());
  EXPECT_EQ(*ReadFile(cpu + "/cpu.cfs_period_us"), "20000");
  EXPECT_EQ(*ReadFile(cpu + "/cpu.cfs_quota_us"), "30000");
  EXPECT_EQ(*ReadFile(memory + "/memory.limit_in_bytes"), "-1");
}

TEST(Cgroup, UnusedQuotaIsKeptForOnePeriodWhereTheKernelCan) {
  for (const int version : {1, 2}) {
    const std::string folder = MakeTempDir();
    const std::string burst = folder + (version == 2 ? "/cpu.max.burst" : "/cpu.cfs_burst_us");
    Cgroup group(version, folder, folder);
    ASSERT_TRUE(group.SetMilliCpu(250).ok());
    EXPECT_FALSE(ReadFile(burst).ok()) << "an old kernel has no such file";
    ASSERT_TRUE(WriteFileAtomically(burst, "     ").ok());
    ASSERT_TRUE(group.SetMilliCpu(500).ok());
    EXPECT_EQ(ReadFile(burst)->substr(0, 5), "10000");
    ASSERT_TRUE(WriteFileAtomically(burst, " ").ok());
    ASSERT_TRUE(group.SetMilliCpu(0).ok());
    EXPECT_EQ(*ReadFile(burst), "0") << "no quota, no burst";
  }
}

TEST(Cgroup, KeepsToTheKernelsSmallestQuota) {
  const std::string folder = MakeTempDir();
  Cgroup group(2, folder, folder);
  ASSERT_TRUE(group.SetMilliCpu(1).ok());
  EXPECT_EQ(*ReadFile(folder + "/cpu.max"), "1000 20000");
}

TEST(CgroupTree, SaysWhyThereIsNone) {
  const std::string proc = MakeTempDir();
  ASSERT_TRUE(
      WriteFileAtomically(proc + "/self/mountinfo", "37 28 0:32 / /proc rw - proc p rw\n").ok());
  ASSERT_TRUE(WriteFileAtomically(proc + "/self/cgroup", "0::/\n").ok());
  const auto tree = CgroupTree::Open("1-test", proc);
  ASSERT_FALSE(tree.ok());
  EXPECT_EQ(tree.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(tree.status().message().find("no cgroup hierarchy"), std::string::npos);
}

// On the machine's own hierarchy, where this user may.
TEST(CgroupTree, MakesLimitsAndRemovesRealGroups) {
  auto tree = CgroupTree::Open(std::to_string(::getpid()) + "-test");
  if (!tree.ok()) GTEST_SKIP() << tree.status().message();
  auto group = (*tree)->Create("function", {.memory_mib = 64, .milli_cpu = 500});
  ASSERT_TRUE(group.ok()) << group.status().ToString();
  const std::vector<std::string> files = (*group)->ProcessFiles();
  const pid_t child = ::fork();
  if (child == 0) {
    for (const std::string& file : files) {
      std::FILE* procs = std::fopen(file.c_str(), "w");
      if (procs == nullptr || std::fputs("0", procs) < 0 || std::fclose(procs) != 0) ::_exit(1);
    }
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE((*group)->SetMilliCpu(250).ok());
  const std::string folder = std::filesystem::path(files[0]).parent_path().string();
  EXPECT_TRUE((*group)->Remove().ok());
  EXPECT_FALSE(std::filesystem::exists(folder));
  tree->reset();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(folder).parent_path()));
}

}  // namespace
}  // namespace lambdadnn
