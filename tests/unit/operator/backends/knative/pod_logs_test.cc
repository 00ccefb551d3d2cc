// SPDX-License-Identifier: Apache-2.0
// Which log is whose, of functions whose containers are started again in the same pod.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/backends/knative/pod_instances.h"
#include "tests/support/hostile_values.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Json PodWithLogs(const Json& container) {
  Json status = container;
  status["name"] = kFunctionContainer;
  return {{"metadata", {{"uid", "p"}, {"labels", {{kGroupLabel, "workers"}}}}},
          {"status", {{"containerStatuses", Json::array({status})}}}};
}

TEST(PodInstances, TheKubeletKeepsTheLogOfTheLastLifeAndOfTheOneBefore) {
  const Json first = PodWithLogs({{"restartCount", 0}});
  EXPECT_EQ(LogOf(first, "p.0"), ContainerLife::kPresent);
  EXPECT_EQ(LogOf(first, "p.1"), std::nullopt);
  EXPECT_EQ(LogOf(first, "q.0"), std::nullopt);
  const Json third = PodWithLogs({{"restartCount", 2}});
  EXPECT_EQ(LogOf(third, "p.2"), ContainerLife::kPresent);
  EXPECT_EQ(LogOf(third, "p.1"), ContainerLife::kBefore);
  EXPECT_EQ(LogOf(third, "p.0"), std::nullopt);
}

TEST(PodInstances, TheLastLifeOfACrashLoopIsTheOneBeforeTheNext) {
  const Json pod = PodWithLogs(
      {{"restartCount", 2}, {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}}});
  EXPECT_EQ(LogOf(pod, "p.2"), ContainerLife::kBefore);
  EXPECT_EQ(LogOf(pod, "p.1"), std::nullopt);
}

TEST(PodInstances, APodThatMakesNoSenseKeepsNoLogOfALifeBefore) {
  ForEachHostileField(PodWithLogs({{"restartCount", 1}}), Json::json_pointer("/status"),
                      [](const Json& pod) { (void)LogOf(pod, "p.0"); });
}

// One worker whose pod answers with the logs of its lives, as the kubelet keeps them.
class KnativeLogs : public Knative {
 protected:
  KnativeLogs() {
    client_.pod_log = [this](const ObjectName& pod, ContainerLife life) -> Result<std::string> {
      asked_.push_back(life);
      EXPECT_EQ(pod.namespace_name, "team");
      if (!answer_.ok()) return answer_;
      const auto of = static_cast<long>(said_.size()) - (life == ContainerLife::kBefore ? 2 : 1);
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
  // The kubelet has begun the next life, which has said so.
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

  std::vector<std::string> said_;  // by the lives of the container
  Status answer_;
  std::vector<ContainerLife> asked_;
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
  EXPECT_THAT(asked_, ElementsAre(ContainerLife::kBefore));
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
  EXPECT_THAT(asked_, ElementsAre(ContainerLife::kPresent, ContainerLife::kBefore));
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
