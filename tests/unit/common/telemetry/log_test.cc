// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/log.h"

#include <gtest/gtest.h>

#include <regex>

namespace lambdadnn {
namespace {

std::string Captured(LogLevel level, std::string_view message) {
  testing::internal::CaptureStderr();
  Log(level, "server", message, {{"iteration", 12}});
  return testing::internal::GetCapturedStderr();
}

TEST(Log, WritesTimeLevelComponentMessageAndFields) {
  const std::string line = Captured(LogLevel::kWarning, "slow store");
  EXPECT_TRUE(std::regex_match(
      line, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z W server: slow store )"
                       "iteration=12\n")))
      << line;
}

TEST(Log, DropsLinesBelowTheLevel) {
  SetLogLevel(LogLevel::kWarning);
  EXPECT_EQ(Captured(LogLevel::kInfo, "quiet"), "");
  EXPECT_TRUE(SetLogLevel("info"));
  EXPECT_NE(Captured(LogLevel::kInfo, "loud"), "");
  EXPECT_EQ(Captured(LogLevel::kDebug, "quiet"), "");
  EXPECT_FALSE(SetLogLevel("verbose"));
}

TEST(Log, WritesOneJsonObjectALineForCollectors) {
  SetLogFormat(LogFormat::kJson);
  const std::string line = Captured(LogLevel::kWarning, "two\nlines, \"quoted\", \xff");
  SetLogFormat(LogFormat::kText);
  EXPECT_TRUE(line.starts_with("{\"ts\":\"20")) << line;
  EXPECT_TRUE(
      line.ends_with("Z\",\"level\":\"warning\",\"logger\":\"server\","
                     "\"msg\":\"two\\nlines, \\\"quoted\\\", \xEF\xBF\xBD\","
                     "\"iteration\":\"12\"}\n"))
      << line;
  EXPECT_EQ(Captured(LogLevel::kInfo, "plain").find('{'), std::string::npos);
}

TEST(FormatLogMessage, KeepsALineALine) {
  EXPECT_EQ(FormatLogMessage("two\nlines", {}), "two\\x0alines");
  EXPECT_EQ(FormatLogMessage("m", {{"a", "x y"}, {"b", "q\"q"}, {"c", ""}, {"d", "1\t2"}}),
            "m a=\"x y\" b=\"q\\\"q\" c=\"\" d=1\\x092");
}

TEST(FormatLogMessage, DoesNotInterpretBraces) {
  EXPECT_EQ(FormatLogMessage("{} {0} %s", {{"seconds", 0.5}}), "{} {0} %s seconds=0.5");
  EXPECT_NE(Captured(LogLevel::kInfo, "{} {0}").find("{} {0}"), std::string::npos);
}

}  // namespace
}  // namespace lambdadnn
