// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/machine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "common/base/files.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

// A /proc and the control group file systems that it tells of, in a folder.
class MachineLimitsTest : public testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/" + file, text).ok());
  }
  void Version1(const std::string& path) {
    Write("self/mountinfo", "32 31 0:29 / " + folder_ +
                                "/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                                "35 31 0:32 / " +
                                folder_ + "/memory rw - cgroup cgroup rw,memory\n");
    Write("self/cgroup", "2:memory:" + path + "\n1:cpu,cpuacct:" + path + "\n");
    Write("cpu/cpu.cfs_quota_us", "-1\n");
    Write("cpu/cpu.cfs_period_us", "100000\n");
    Write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  }
  void Version2(const std::string& path) {
    Write("self/mountinfo", "30 23 0:26 / " + folder_ + "/unified rw - cgroup2 cgroup2 rw\n");
    Write("self/cgroup", "0::" + path + "\n");
    Write("unified/cgroup.controllers", "cpu memory\n");  // the outermost group has no limits
  }
  Machine Measure() const { return MeasureMachine(folder_); }

  const std::string folder_ = MakeTempDir();
  const Machine free_ = MeasureMachine(MakeTempDir());
};

TEST_F(MachineLimitsTest, GpusAreThoseOfItsDevicesOrThoseThatCudaMaySee) {
  EXPECT_THAT(GpusOf(folder_ + "/none", std::nullopt), testing::IsEmpty());
  for (const char* name : {"nvidia7", "nvidia2", "nvidiactl", "nvidia-uvm", "null"}) {
    Write(name, "");
  }
  EXPECT_THAT(GpusOf(folder_, std::nullopt), testing::ElementsAre("0", "1"));
  struct Row {
    const char* visible;
    std::vector<std::string> gpus;
  };
  const Row rows[] = {{"", {}},          {"-1", {}},
                      {"3", {"3"}},      {"1, 0", {"1", "0"}},
                      {"0,-1,2", {"0"}}, {"GPU-8932f937,GPU-12", {"GPU-8932f937", "GPU-12"}}};
  for (const Row& row : rows) EXPECT_EQ(GpusOf(folder_, row.visible), row.gpus) << row.visible;
}

TEST_F(MachineLimitsTest, WithoutControlGroupsItIsWhatTheKernelTells) {
  EXPECT_GE(free_.cpus, 1);
  EXPECT_GT(free_.memory_mib, 64);
}

TEST_F(MachineLimitsTest, AGroupWithoutLimitsLimitsNothing) {
  Version1("/");
  EXPECT_EQ(Measure().cpus, free_.cpus);
  EXPECT_EQ(Measure().memory_mib, free_.memory_mib);
  Version2("/a");
  Write("unified/a/cpu.max", "max 100000\n");
  Write("unified/a/memory.max", "max\n");
  EXPECT_EQ(Measure().cpus, free_.cpus);
  EXPECT_EQ(Measure().memory_mib, free_.memory_mib);
}

TEST_F(MachineLimitsTest, TheOwnGroupOfVersion1Limits) {
  Version1("/a");
  Write("cpu/a/cpu.cfs_quota_us", "50000\n");
  Write("cpu/a/cpu.cfs_period_us", "100000\n");
  Write("memory/a/memory.limit_in_bytes", "67108864\n");
  EXPECT_EQ(Measure().cpus, 0.5);
  EXPECT_EQ(Measure().memory_mib, 64);
}

TEST_F(MachineLimitsTest, TheOwnGroupOfVersion2Limits) {
  Version2("/a");
  Write("unified/a/cpu.max", "15000 20000\n");
  Write("unified/a/memory.max", "33554432\n");
  EXPECT_EQ(Measure().cpus, 0.75);
  EXPECT_EQ(Measure().memory_mib, 32);
}

TEST_F(MachineLimitsTest, TheTightestGroupAboveItLimits) {
  Version2("/a/b/c");
  Write("unified/a/cpu.max", "50000 100000\n");
  Write("unified/a/memory.max", "67108864\n");
  Write("unified/a/b/cpu.max", "80000 100000\n");
  Write("unified/a/b/memory.max", "33554432\n");
  Write("unified/a/b/c/cpu.max", "max 100000\n");
  Write("unified/a/b/c/memory.max", "max\n");
  EXPECT_EQ(Measure().cpus, 0.5);
  EXPECT_EQ(Measure().memory_mib, 32);
}

TEST_F(MachineLimitsTest, InAContainerThatSeesOnlyItsOwnGroupTheMountIsTheGroup) {
  Version1("/docker/0123");
  Write("cpu/cpu.cfs_quota_us", "50000\n");
  Write("memory/memory.limit_in_bytes", "67108864\n");
  EXPECT_EQ(Measure().cpus, 0.5);
  EXPECT_EQ(Measure().memory_mib, 64);
}

TEST_F(MachineLimitsTest, WhatIsNoNumberIsNoLimit) {
  Version2("/a");
  Write("unified/a/cpu.max", "many\n");
  Write("unified/a/memory.max", "");
  EXPECT_EQ(Measure().cpus, free_.cpus);
  EXPECT_EQ(Measure().memory_mib, free_.memory_mib);
}

TEST(MeasureMachine, CountsTheCpusThatThisThreadMayRunOn) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (CPU_ISSET(first, &before) == 0) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const Machine machine = MeasureMachine(MakeTempDir());
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(machine.cpus, 1);
  EXPECT_EQ(MeasureMachine(MakeTempDir()).cpus, CPU_COUNT(&before));
}

TEST_F(MachineLimitsTest, TheModelOfItsCpusIsTheFirstOneNamed) {
  EXPECT_EQ(CpuModel(folder_), "") << "nothing tells";
  Write("cpuinfo", "processor\t: 0\nflags\t\t: fpu avx2\n");
  EXPECT_EQ(CpuModel(folder_), "");
  Write("cpuinfo",
        "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Fast CPU @ 2.00GHz\n\n"
        "processor\t: 1\nmodel name\t: Another\n");
  EXPECT_EQ(CpuModel(folder_), "Fast CPU @ 2.00GHz");
}

}  // namespace
}  // namespace lambdadnn
