// SPDX-License-Identifier: Apache-2.0
#include "common/base/clock.h"

#include <gtest/gtest.h>

#include "common/base/time_text.h"

namespace lambdadnn {
namespace {

TEST(Clock, Rfc3339RoundTrips) {
  WallTime time;
  ASSERT_TRUE(ParseRfc3339("2026-01-31T12:00:05Z", &time));
  EXPECT_EQ(FormatRfc3339(time), "2026-01-31T12:00:05Z");
}

TEST(Clock, Rfc3339HasMillisecondsWhereTheyAreAskedFor) {
  for (const char* text : {"2026-01-31T12:00:05.000Z", "2026-01-31T12:00:05.250Z",
                           "2026-01-31T12:00:05.999Z", "1969-12-31T23:59:59.001Z"}) {
    WallTime time;
    ASSERT_TRUE(ParseRfc3339(text, &time));
    EXPECT_EQ(FormatRfc3339Millis(time + FromSeconds(1e-6)), text);
  }
}

TEST(Clock, Rfc3339RefusesYearsThatNanosecondsCannotHold) {
  WallTime time;
  EXPECT_TRUE(ParseRfc3339("1678-01-01T00:00:00Z", &time));
  EXPECT_TRUE(ParseRfc3339("2261-12-31T00:00:00Z", &time));
  EXPECT_FALSE(ParseRfc3339("0026-11-21T09:00:00Z", &time));
  EXPECT_FALSE(ParseRfc3339("2262-01-01T00:00:00Z", &time));
}

TEST(Clock, Rfc3339ReadsFractionsAndRefusesOtherThings) {
  WallTime whole;
  WallTime fraction;
  ASSERT_TRUE(ParseRfc3339("2026-01-31T12:00:05Z", &whole));
  ASSERT_TRUE(ParseRfc3339("2026-01-31T12:00:05.250000Z", &fraction));
  EXPECT_NEAR(ToSeconds(fraction - whole), 0.25, 1e-6);
  EXPECT_FALSE(ParseRfc3339("2026-01-31", &whole));
  EXPECT_FALSE(ParseRfc3339("2026-01-31T12:00:05", &whole));
  EXPECT_FALSE(ParseRfc3339("", &whole));
}

TEST(Clock, SleepsAtLeastAsLongAsAsked) {
  SystemClock clock;
  const Instant before = clock.Now();
  clock.SleepFor(std::chrono::milliseconds(5));
  EXPECT_GE(clock.Now() - before, std::chrono::milliseconds(5));
  clock.SleepFor(std::chrono::milliseconds(-5));
}

}  // namespace
}  // namespace lambdadnn
