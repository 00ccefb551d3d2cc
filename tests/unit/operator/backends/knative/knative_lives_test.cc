// SPDX-License-Identifier: Apache-2.0
// How old the backend says that functions are, and what it tells of their logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/kube/object_metadata.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(Knative, AgesGoOnForAnOperatorThatComesLater) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  MakeAllReady();
  const double before = List()[0].age_seconds;
  EXPECT_GT(before, 0);
  Do([&] { backend_.reset(); });
  RunFor(100);
  Start();
  EXPECT_NEAR(List()[0].age_seconds - before, 100, 2);
}

// What a node an hour ahead says of an end must not have it billed for that hour.
TEST_F(Knative, AnEndIsNoLaterThanItWasSeen) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  MakeAllReady();
  const Json pod = stand_in_.All(PodType())[0];
  const std::string ahead = FormatRfc3339(process_.runtime().clock.Wall() + std::chrono::hours(1));
  SetContainer(
      pod, {{"restartCount", 1},
            {"state", {{"running", {{"startedAt", ahead}}}}},
            {"lastState",
             {{"terminated", {{"exitCode", 2}, {"startedAt", ahead}, {"finishedAt", ahead}}}}}});
  EXPECT_EQ(List()[0].ended_seconds, 0);
  RunFor(30);
  EXPECT_NEAR(List()[0].ended_seconds, 30, 2);
}

TEST_F(Knative, OfANodeThatIsLostNobodyKnowsForHowLong) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  MakeAllReady();
  DeleteOnALostNode(stand_in_.All(PodType())[0]);
  RunFor(50);
  EXPECT_GT(List()[0].age_seconds, 0);  // it is paid while it ends
  RunFor(50);
  EXPECT_EQ(List()[0].phase, FunctionPhase::kGone);
  EXPECT_EQ(List()[0].age_seconds, 0);
}

// One worker whose pod answers with the logs of its container's runs, as the kubelet keeps them.
class KnativeLogs : public Knative {
 protected:
  KnativeLogs() {
    client_.pod_log = [this](const ObjectName& pod, ContainerRun life) -> Result<std::string> {
      asked_.push_back(life);
      EXPECT_EQ(pod.namespace_name, "team");
      if (!answer_.ok()) return answer_;
      const auto of = static_cast<long>(said_.size()) - (life == ContainerRun::kPrevious ? 2 : 1);
      if (of < 0) return NotFoundError("previous terminated container not found");
      return said_[static_cast<size_t>(of)];
    };
  }
  // A pod that is ready; its name.
  Json MakeOne() {
    Start();
    EXPECT_TRUE(Ensure(Group(1)).ok());
    Settle();
    MakeAllReady();
    said_ = {"one begins\n"};
    return stand_in_.All(PodType())[0];
  }
  // The kubelet has restarted the container, which has logged its start.
  void StartAgain(const Json& pod, const std::string& reason = "Error") {
    said_.push_back("two begins\n");
    SetContainer(pod, {{"restartCount", 1},
                       {"state", {{"running", Json::object()}}},
                       {"lastState", Ended(137, reason)}});
  }
  std::string LogsOfLife(const std::string& uid) {
    std::string text;
    Do([&] {
      const auto log = backend_->Logs(Identity("digits"), uid, 100);
      text = log.ok() ? *log : log.status().ToString();
    });
    return text;
  }

  std::vector<std::string> said_;  // by the container's runs
  Status answer_;
  std::vector<ContainerRun> asked_;
};

TEST_F(KnativeLogs, TheLastWordsOfAContainerThatWasKilledAreToldWithItsEnd) {
  const Json pod = MakeOne();
  said_[0] += "allocating 256 MiB\n\n";
  EXPECT_THAT(List()[0].last_log_line, IsEmpty());
  EXPECT_THAT(asked_, IsEmpty());
  StartAgain(pod, "OOMKilled");
  const std::vector<FunctionInstance> lives = List();
  ASSERT_THAT(lives, SizeIs(2));
  EXPECT_EQ(lives[0].reason, "OOMKilled");
  EXPECT_EQ(lives[0].last_log_line, "allocating 256 MiB");
  EXPECT_EQ(lives[1].last_log_line, "");
  EXPECT_THAT(asked_, ElementsAre(ContainerRun::kPrevious));
  // Told again, asked for once.
  EXPECT_EQ(List()[0].last_log_line, "allocating 256 MiB");
  EXPECT_THAT(asked_, SizeIs(1));
}

TEST_F(KnativeLogs, EachLifeHasItsOwnLog) {
  const Json pod = MakeOne();
  const std::string first = List()[0].uid;
  StartAgain(pod);
  const std::string second = List()[1].uid;
  EXPECT_EQ(LogsOfLife(first), "one begins\n");
  EXPECT_EQ(LogsOfLife(second), "two begins\n");
  SetContainer(pod, {{"restartCount", 2}, {"state", {{"running", Json::object()}}}});
  said_.push_back("three begins\n");
  EXPECT_EQ(LogsOfLife(second), "two begins\n");
  EXPECT_THAT(LogsOfLife(first), testing::HasSubstr("not kept"));
}

TEST_F(KnativeLogs, ALifeThatBeginsWhileTheLogIsReadLeavesItsWordsOut) {
  const Json pod = MakeOne();
  said_[0] += "last words\n";
  SetContainer(pod, {{"restartCount", 0}, {"state", Ended(2, "Error")}});
  decide_ = [&](const std::string& call, Point point) {
    if (call == "podLog" && point == Point::kBefore && asked_.empty()) {
      said_.push_back("two begins\n");
      stand_in_.SetStatus(
          pod, {{"containerStatuses", Json::array({{{"name", kFunctionContainer},
                                                    {"restartCount", 1},
                                                    {"state", {{"running", Json::object()}}},
                                                    {"lastState", Ended(2, "Error")}}})}});
      process_.runtime().clock.SleepFor(FromSeconds(0.5));
    }
    return OkStatus();
  };
  ASSERT_THAT(List(), SizeIs(1));
  EXPECT_THAT(asked_, ElementsAre(ContainerRun::kCurrent, ContainerRun::kPrevious));
  EXPECT_EQ(List()[0].last_log_line, "last words");
}

TEST_F(KnativeLogs, ALogThatIsNotKeptIsNoError) {
  const Json pod = MakeOne();
  StartAgain(pod);
  answer_ = NotFoundError("previous terminated container \"function\" not found");
  ASSERT_THAT(List(), SizeIs(2));
  EXPECT_EQ(List()[0].last_log_line, "");
  EXPECT_EQ(List()[0].reason, "Killed");
  EXPECT_THAT(asked_, SizeIs(1));
}

TEST_F(KnativeLogs, AServerThatDoesNotAnswerIsNotAskedForEveryLog) {
  Start();
  ASSERT_TRUE(Ensure(Group(3)).ok());
  Settle();
  answer_ = UnavailableError("down");
  for (const Json& pod : stand_in_.All(PodType())) {
    SetContainer(pod, {{"restartCount", 0}, {"state", Ended(2, "Error")}});
  }
  EXPECT_THAT(List(), SizeIs(3));
  EXPECT_THAT(asked_, SizeIs(1));
}

TEST_F(KnativeLogs, ANewPodIsAskedForItsOwnLastWords) {
  const Json pod = MakeOne();
  StartAgain(pod);
  EXPECT_THAT(List(), SizeIs(2));
  Do([&] { ASSERT_TRUE(server_.Delete(PodType(), NameOf(pod), "").ok()); });
  Settle();
  said_ = {"one begins\n"};
  StartAgain(stand_in_.All(PodType())[0]);
  ASSERT_THAT(List(), SizeIs(2));
  EXPECT_EQ(List()[0].last_log_line, "one begins");
  EXPECT_THAT(asked_, SizeIs(2));
}

}  // namespace
}  // namespace lambdadnn
