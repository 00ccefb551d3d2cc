// SPDX-License-Identifier: Apache-2.0
#include "common/base/descriptor_limit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace lambdadnn {
namespace {

TEST(DescriptorLimit, TheSoftLimitIsRaisedToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = std::min<rlim_t>(64, before.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const int64_t limit = RaiseDescriptorLimit();
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(limit, static_cast<int64_t>(after.rlim_cur));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(DescriptorLimit, OpenFilesAreCounted) {
  const int64_t before = OpenDescriptors();
  ASSERT_GT(before, 0);
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_EQ(OpenDescriptors(), before + 1);
  ::close(file);
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace lambdadnn
