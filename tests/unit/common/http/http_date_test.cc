// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_date.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(HttpDate, IsReadToTheSecond) {
  WallTime time;
  ASSERT_TRUE(ParseHttpDate("Fri, 24 May 2013 00:00:01 GMT", &time));
  EXPECT_EQ(FormatRfc3339(time), "2013-05-24T00:00:01Z");
  ASSERT_TRUE(ParseHttpDate("Thu, 01 Jan 1970 00:00:00 GMT", &time));
  EXPECT_EQ(time, WallTime{});
}

TEST(HttpDate, WhatIsNoneLeavesTheTimeAlone) {
  const WallTime before = WallTime{} + std::chrono::seconds(7);
  WallTime time = before;
  for (const char* text :
       {"", "now", "2013-05-24T00:00:01Z", "Fri, 24 May 2013 00:00:01",
        "Fri, 24 May 2013 00:00:01 GMT ", "Fri, 99 May 2013 00:00:01 GMT",
        // Years that clocks cannot be compared with: what counts nanoseconds ends in 2262.
        "Fri, 31 Dec 9999 23:59:59 GMT", "Sat, 01 Jan 2262 00:00:00 GMT",
        "Wed, 31 Dec 1969 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT"}) {
    EXPECT_FALSE(ParseHttpDate(text, &time)) << text;
    EXPECT_EQ(time, before) << text;
  }
}

}  // namespace
}  // namespace lambdadnn
