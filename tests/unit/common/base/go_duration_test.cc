// SPDX-License-Identifier: Apache-2.0
#include "common/base/go_duration.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(GoDuration, IsNumbersWithUnitsOrWholeSeconds) {
  EXPECT_DOUBLE_EQ(*ParseGoDuration("60s"), 60);
  EXPECT_DOUBLE_EQ(*ParseGoDuration("1m30s"), 90);
  EXPECT_DOUBLE_EQ(*ParseGoDuration("1.5h"), 5400);
  EXPECT_DOUBLE_EQ(*ParseGoDuration("250ms"), 0.25);
  EXPECT_DOUBLE_EQ(*ParseGoDuration("1us"), 1e-6);
  EXPECT_DOUBLE_EQ(*ParseGoDuration("60"), 60);
  EXPECT_DOUBLE_EQ(*ParseGoDuration("0"), 0);
}

TEST(GoDuration, AnythingElseIsNone) {
  for (const char* text : {"", "s", "-1", "-1s", "1.5", "5 s", "1x", "s1", "1s1", "1..2s",
                           "99999999999999999999", "nans", "infs"}) {
    EXPECT_FALSE(ParseGoDuration(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace lambdadnn
