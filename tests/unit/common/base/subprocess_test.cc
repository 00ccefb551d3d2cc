// SPDX-License-Identifier: Apache-2.0
#include "common/base/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace lambdadnn {
namespace {

using testing::HasSubstr;

SubprocessSpec Shell(const std::string& script) { return {.arguments = {"sh", "-c", script}}; }

TEST(Subprocess, OutputAndExitCodeComeBack) {
  const Result<SubprocessResult> result = RunSubprocess(Shell("printf 'a b'; exit 3"));
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->output, "a b");
  EXPECT_EQ(result->exit_code, 3);
}

TEST(Subprocess, ArgumentsArriveAsTheyAre) {
  const Result<SubprocessResult> result =
      RunSubprocess({.arguments = {"/usr/bin/printf", "%s|", "a b", "$HOME", "*", ""}});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->output, "a b|$HOME|*||");
}

TEST(Subprocess, EnvironmentIsAddedAndReplaced) {
  SubprocessSpec spec = Shell("printf '%s %s %s' \"$LDNN_TEST\" \"$HOME\" \"${PATH:+path}\"");
  spec.environment = {{"LDNN_TEST", "one two"}, {"HOME", "/elsewhere"}};
  EXPECT_EQ(RunSubprocess(spec)->output, "one two /elsewhere path");
}

TEST(Subprocess, StandardInputIsEmpty) {
  EXPECT_EQ(RunSubprocess(Shell("cat; echo end"))->output, "end\n");
}

TEST(Subprocess, InputOfAnyLengthArrives) {
  const std::string text(size_t{3} << 20, 'x');
  SubprocessSpec spec = Shell("wc -c");
  spec.input = text;
  EXPECT_EQ(RunSubprocess(spec)->output, std::to_string(text.size()) + "\n");
}

TEST(Subprocess, InputThatNobodyReadsHoldsUpNothing) {
  const std::string text(size_t{3} << 20, 'x');
  for (const std::string script :
       {"echo end", "exec <&-; echo end", "head -c 10 >/dev/null; echo end"}) {
    SubprocessSpec spec = Shell(script);
    spec.input = text;
    EXPECT_EQ(RunSubprocess(spec)->output, "end\n") << script;
  }
}

TEST(Subprocess, AChildThatKeepsLittleHasNoneOfTheEnvironment) {
  ASSERT_EQ(setenv("LDNN_TEST_SECRET", "secret", 1), 0);
  SubprocessSpec spec = Shell("printf '%s %s %s' \"$LDNN_TEST_SECRET\" \"$OWN\" \"${PATH:+path}\"");
  spec.environment = {{"OWN", "own"}};
  EXPECT_EQ(RunSubprocess(spec)->output, "secret own path");
  spec.keeps_little = true;
  EXPECT_EQ(RunSubprocess(spec)->output, " own path");
  unsetenv("LDNN_TEST_SECRET");
}

TEST(Subprocess, SignalsShowInTheExitCode) {
  EXPECT_EQ(RunSubprocess(Shell("kill -9 $$"))->exit_code, 128 + 9);
}

TEST(Subprocess, MissingProgramIsNamed) {
  const Status status = RunSubprocess({.arguments = {"no-such-program-here"}}).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("no-such-program-here"));
}

TEST(Subprocess, SlowProgramsAreKilled) {
  for (const std::string script : {"exec sleep 600", "exec sleep 600 >&-"}) {
    SubprocessSpec spec = Shell(script);
    spec.time_limit = std::chrono::milliseconds(100);
    EXPECT_EQ(RunSubprocess(spec).status().code(), StatusCode::kDeadlineExceeded) << script;
  }
}

TEST(Subprocess, ChattyProgramsAreKilled) {
  SubprocessSpec spec = Shell("while :; do echo line; done");
  spec.max_output_bytes = 1000;
  EXPECT_EQ(RunSubprocess(spec).status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace lambdadnn
