// SPDX-License-Identifier: Apache-2.0
#include "common/base/throttled_time.h"

#include <gtest/gtest.h>

#include "common/base/files.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

class ThrottledTimeTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(root_ + path, text).ok());
  }
  // -1 = not told.
  double Seconds() {
    const auto time = ThrottledTime::Open(root_);
    return time == nullptr ? -1 : time->Seconds();
  }
  const std::string root_ = MakeTempDir();
};

TEST_F(ThrottledTimeTest, IsThatOfTheProcessGroupOfVersion2) {
  Write("/proc/self/cgroup", "0::/functions/one\n");
  Write("/sys/fs/cgroup/functions/one/cpu.stat",
        "usage_usec 9000000\nnr_periods 7\nnr_throttled 3\nthrottled_usec 1500000\nnr_bursts 0\n");
  Write("/sys/fs/cgroup/cpu.stat", "throttled_usec 77\n");
  EXPECT_DOUBLE_EQ(Seconds(), 1.5);
}

TEST_F(ThrottledTimeTest, IsReadAnew) {
  Write("/proc/self/cgroup", "0::/\n");
  const std::string file = root_ + "/sys/fs/cgroup/cpu.stat";
  ASSERT_TRUE(WriteFileAtomically(file, "throttled_usec 1000000\n").ok());
  const auto time = ThrottledTime::Open(root_);
  ASSERT_NE(time, nullptr);
  EXPECT_DOUBLE_EQ(time->Seconds(), 1);
  // In place, as the kernel does it.
  FILE* const stat = std::fopen(file.c_str(), "w");
  ASSERT_NE(stat, nullptr);
  std::fputs("throttled_usec 2500000\n", stat);
  std::fclose(stat);
  EXPECT_DOUBLE_EQ(time->Seconds(), 2.5);
  std::fclose(std::fopen(file.c_str(), "w"));
  EXPECT_EQ(time->Seconds(), 0) << "what can no longer be read";
}

TEST_F(ThrottledTimeTest, OfVersion1CountsNanosecondsOfTheCpuController) {
  Write("/proc/self/cgroup", "5:cpuset:/a\n4:memory:/b\n3:cpu,cpuacct:/c\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/c/cpu.stat",
        "nr_periods 4\nnr_throttled 2\nthrottled_time 250000000\n");
  EXPECT_DOUBLE_EQ(Seconds(), 0.25);
}

TEST_F(ThrottledTimeTest, InAContainerLiesAtTheMount) {
  Write("/proc/self/cgroup", "0::/kubepods/of/the/node\n");
  Write("/sys/fs/cgroup/cpu.stat", "usage_usec 1\nthrottled_usec 3000000\n");
  EXPECT_DOUBLE_EQ(Seconds(), 3);
}

TEST_F(ThrottledTimeTest, IsNotToldWhereNoGroupHasIt) {
  EXPECT_EQ(Seconds(), -1);
  Write("/proc/self/cgroup", "no colons\n1:cpuset:/\n");
  EXPECT_EQ(Seconds(), -1);
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/cpu.stat", "usage_usec 1\nmore_throttled_usec 5\n");
  EXPECT_EQ(Seconds(), -1);
}

}  // namespace
}  // namespace lambdadnn
