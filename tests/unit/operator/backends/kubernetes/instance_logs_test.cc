// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/instance_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/backends/kubernetes/pod_instances.h"
#include "tests/unit/operator/backends/kubernetes/pods_fixture.h"

namespace lambdadnn {
namespace {

class InstanceLogsTest : public OfPods {
 protected:
  InstanceLogsTest() {
    client_.pod_log = [this](const ObjectName&, ContainerRun) {
      ++asked_;
      return log_;
    };
  }
  // One pod whose container has ended.
  void MakeEnded(const std::string& name) {
    const Json pod = MakePod(name, "job-1");
    Do([&] {
      stand_in_.SetStatus(pod, {{"containerStatuses",
                                 Json::array({{{"name", kFunctionContainer},
                                               {"restartCount", 0},
                                               {"state", {{"terminated", {{"exitCode", 2}}}}}}})}});
    });
    RunFor(1);
  }
  // The pod's function in one listing.
  FunctionInstance LookAt(const std::string& name, InstanceLogs::Look* look) {
    std::vector<FunctionInstance> lives;
    Do([&] {
      const auto pod = pods_->Get({"team", name});
      lives = InstancesOf(*pod);
      logs_->AddEnds(*pod, look, &lives);
    });
    return lives.back();
  }
  InstanceLogs::Look Now() { return {.begin = process_.runtime().clock.Now()}; }

  Result<std::string> log_ = std::string("begins\nout of luck\n");
  int asked_ = 0;
  std::unique_ptr<InstanceLogs> logs_;
};

TEST_F(InstanceLogsTest, TheLastWordsOfAnEndAreAskedForOnce) {
  Start();
  logs_ = std::make_unique<InstanceLogs>(client_, process_.runtime(), *pods_);
  MakeEnded("a");
  InstanceLogs::Look look = Now();
  EXPECT_EQ(LookAt("a", &look).last_log_line, "out of luck");
  RunFor(10);
  look = Now();
  const FunctionInstance again = LookAt("a", &look);
  EXPECT_EQ(again.last_log_line, "out of luck");
  EXPECT_GE(again.ended_seconds, 10);
  EXPECT_EQ(asked_, 1);
  logs_->Forget({"team", "a"});
  look = Now();
  EXPECT_EQ(LookAt("a", &look).ended_seconds, 0);
  EXPECT_EQ(asked_, 2);
}

TEST_F(InstanceLogsTest, ALookAsksNoMoreOnceTheServerDoesNotAnswer) {
  Start();
  logs_ = std::make_unique<InstanceLogs>(client_, process_.runtime(), *pods_);
  MakeEnded("a");
  MakeEnded("b");
  log_ = UnavailableError("no answer");
  InstanceLogs::Look look = Now();
  EXPECT_EQ(LookAt("a", &look).last_log_line, "");
  EXPECT_FALSE(look.more);
  EXPECT_EQ(LookAt("b", &look).last_log_line, "");
  EXPECT_EQ(asked_, 1);
}

TEST_F(InstanceLogsTest, ADeletedPodIsNotAskedForItsLastLine) {
  Start();
  logs_ = std::make_unique<InstanceLogs>(client_, process_.runtime(), *pods_);
  MakeEnded("a");
  Json pod = *pods_->Get({"team", "a"});
  pod["metadata"]["deletionTimestamp"] = "2033-01-01T10:01:00Z";
  pod["status"]["phase"] = "Failed";
  std::vector<FunctionInstance> lives = InstancesOf(pod);
  InstanceLogs::Look look = Now();
  Do([&] { logs_->AddEnds(pod, &look, &lives); });
  EXPECT_EQ(lives.back().phase, FunctionPhase::kGone);
  EXPECT_EQ(asked_, 0);
}

TEST_F(InstanceLogsTest, OfAPodThatIsGoneNothingIsKept) {
  Start();
  logs_ = std::make_unique<InstanceLogs>(client_, process_.runtime(), *pods_);
  MakeEnded("a");
  const auto pod = pods_->Get({"team", "a"});
  DeletePod("a");
  std::vector<FunctionInstance> lives = InstancesOf(*pod);
  InstanceLogs::Look look = Now();
  Do([&] { logs_->AddEnds(*pod, &look, &lives); });
  EXPECT_EQ(lives.back().last_log_line, "");
  EXPECT_EQ(asked_, 0);
  Result<std::string> read = std::string();
  Do([&] { read = logs_->Read({"team", "a"}, lives.back().uid, 5); });
  EXPECT_EQ(read.status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace lambdadnn
