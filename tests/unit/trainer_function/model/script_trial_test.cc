// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/script_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>

#include "common/base/files.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

TEST(ScriptTrial, ArgumentsComeBack) {
  TrialNeeds needs;
  needs.loss = Loss::kMse;
  needs.sample_shape = {3, 32, 32};
  needs.classes = 0;
  needs.more_classes = true;
  needs.target_size = 4;
  needs.uri = "s3://bucket/a net.pt";
  const TrialLimits limits = {.memory_bytes = 5 << 20, .cpu_seconds = 7, .wall = {}};
  const auto back = ParseTrialArguments(TrialArguments(needs, limits));
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(back->needs.loss, needs.loss);
  EXPECT_EQ(back->needs.sample_shape, needs.sample_shape);
  EXPECT_EQ(back->needs.classes, 0);
  EXPECT_TRUE(back->needs.more_classes);
  EXPECT_EQ(back->needs.target_size, 4);
  EXPECT_EQ(back->needs.uri, needs.uri);
  EXPECT_EQ(back->limits.memory_bytes, limits.memory_bytes);
  EXPECT_EQ(back->limits.cpu_seconds, 7);
  EXPECT_EQ(ParseTrialArguments({kCheckModuleCommand, "MSE"}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(ScriptTrial, EachEndHasASentence) {
  struct Row {
    int exit_code;
    StatusCode code;
    const char* says;
  };
  const Row rows[] = {
      {0, StatusCode::kOk, ""},
      {3, StatusCode::kInvalidArgument, "what it printed"},
      {4, StatusCode::kFailedPrecondition, "what it printed"},
      {128 + SIGXCPU, StatusCode::kInvalidArgument, "within 30 s of a processor; see that forward"},
      {128 + SIGKILL, StatusCode::kInvalidArgument, "more than 1024 MiB of memory"},
      {128 + SIGSEGV, StatusCode::kInvalidArgument, "signal 11"},
      {1, StatusCode::kInvalidArgument, "exit code 1"},
  };
  for (const Row& row : rows) {
    const Status status = JudgeTrial(row.exit_code, "what it printed\n", {});
    EXPECT_EQ(status.code(), row.code) << row.exit_code;
    EXPECT_THAT(status.message(), HasSubstr(row.says));
  }
}

// A program in the worker's place.
class TrialProgramTest : public testing::Test {
 protected:
  Status Run(const std::string& script, TrialLimits limits = {}) {
    const std::string path = folder_ + "/worker";
    EXPECT_TRUE(WriteFileAtomically(path, "#!/bin/sh\n" + script + "\n").ok());
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    return TryModule(path, "0123456789", {.sample_shape = {1, 28, 28}, .uri = "net.pt"}, limits);
  }
  const std::string folder_ = MakeTempDir();
};

TEST_F(TrialProgramTest, GetsTheArchiveAndMemoryForCopiesOfIt) {
  EXPECT_TRUE(Run("test \"$(cat)\" = 0123456789 && test $1 = check-module && test $3 = 1x28x28 && "
                  "test $8 = 160 && test $9 = 5",
                  {.memory_bytes = 100, .cpu_seconds = 5})
                  .ok());
}

TEST_F(TrialProgramTest, HasNoneOfTheFunctionsSecrets) {
  ASSERT_EQ(setenv("LAMBDADNN_JOB_KEY", "secret", 1), 0);
  EXPECT_TRUE(Run("test -z \"$LAMBDADNN_JOB_KEY\"").ok());
  unsetenv("LAMBDADNN_JOB_KEY");
}

// Unlike a limit of CPU time: another time there may be more of the processor for it.
TEST_F(TrialProgramTest, ThatDoesNotEndIsEndedAndMayBeTriedAgain) {
  const Status status = Run("exec sleep 600", {.wall = std::chrono::milliseconds(100)});
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("within 0.1 s; see that forward ends"));
}

TEST_F(TrialProgramTest, ThatIsNotThereIsNoFaultOfTheModule) {
  EXPECT_EQ(TryModule("/nowhere/worker", "", {}, {}).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace lambdadnn
