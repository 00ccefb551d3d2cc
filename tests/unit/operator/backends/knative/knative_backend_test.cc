// SPDX-License-Identifier: Apache-2.0
// The Knative backend against a stand-in for Knative, in virtual time.
#include "operator/backends/knative/knative_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "operator/backends/knative/pod_instances.h"
#include "tests/simulation/sim_runtime.h"
#include "tests/simulation/sim_scheduler.h"
#include "tests/support/faulty_kube_client.h"
#include "tests/support/knative_stand_in.h"

namespace lambdadnn {
namespace {

using simulation::SimProcess;
using simulation::SimScheduler;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Knative : public testing::Test {
 protected:
  using Point = FaultyKubeClient::Point;

  Knative()
      : server_process_(scheduler_.NewProcess("server")),
        process_(scheduler_.NewProcess("operator")),
        server_(server_process_.runtime()),
        stand_in_(server_),
        client_(server_, [this](const std::string& call, const std::string&, Point point) {
          if (point == Point::kBefore) ++calls_[call];
          return decide_ ? decide_(call, point) : OkStatus();
        }) {}
  ~Knative() override { (void)backend_.release(); }  // its fibers go with the scheduler

  // The uid of a job, which is there from the first question on: children of nobody are collected.
  std::string JobUid(const std::string& job) {
    std::string& uid = job_uids_[job];
    if (uid.empty()) {
      const Json object = {{"apiVersion", "lambdadnn.io/v1alpha1"},
                           {"kind", "ServerlessTrainingJob"},
                           {"metadata", {{"name", job}, {"namespace", "team"}}}};
      uid = UidOf(server_.Create(ServerlessTrainingJobType(), object).value());
    }
    return uid;
  }
  FunctionGroup Group(int count, const std::string& name = "workers",
                      const std::string& job = "digits") {
    FunctionGroup group;
    group.job_uid = JobUid(job);
    group.namespace_name = "team";
    group.job_name = job;
    group.name = name;
    group.program = name == "servers" ? "server" : "worker";
    group.count = count;
    group.memory_mib = 512;
    group.milli_cpu = 250;
    group.timeout_seconds = 300;
    group.environment = {{"LAMBDADNN_JOB_KEY", "secret-key"}};
    return group;
  }
  void Start(KnativeBackend::Options options = {}) {
    options.services.worker_image = "worker:1";
    options.services.server_image = "server:1";
    Do([&] { backend_ = std::make_unique<KnativeBackend>(client_, process_.runtime(), options); });
    RunFor(1);
  }
  // In the operator's process, to its end.
  void Do(const std::function<void()>& work) {
    bool done = false;
    (void)process_.Spawn("work", [&] {
      work();
      done = true;
    });
    const Status ran = scheduler_.Run([&] { return done; }, {});
    ASSERT_TRUE(ran.ok()) << ran.ToString();
  }
  void RunFor(double seconds) {
    bool done = false;
    scheduler_.At(scheduler_.Now() + FromSeconds(seconds), [&] { done = true; });
    const Status ran = scheduler_.Run([&] { return done; }, {});
    ASSERT_TRUE(ran.ok()) << ran.ToString();
  }
  Status Ensure(const FunctionGroup& group) {
    Status status;
    Do([&] { status = backend_->EnsureGroup(group); });
    return status;
  }
  // What the watch has seen after Knative has acted.
  void Settle() {
    stand_in_.Reconcile();
    RunFor(1);
  }
  void MakeAllReady() {
    for (const Json& pod : stand_in_.All(PodType())) stand_in_.MakeReady(pod);
    RunFor(1);
  }
  std::vector<FunctionInstance> List(const std::string& job = "digits") {
    std::vector<FunctionInstance> instances;
    Do([&] { instances = backend_->List(JobUid(job)).value(); });
    return instances;
  }
  // The end of a container, as the kubelet tells it.
  static Json Ended(int exit_code, const std::string& reason) {
    return {{"terminated", {{"exitCode", exit_code}, {"reason", reason}}}};
  }
  void SetContainer(const Json& pod, Json container) {
    container["name"] = kFunctionContainer;
    stand_in_.SetStatus(pod, {{"containerStatuses", Json::array({container})}});
    RunFor(1);
  }

  SimScheduler scheduler_{1};
  SimProcess& server_process_;
  SimProcess& process_;
  InMemoryApiServer server_;
  KnativeStandIn stand_in_;
  std::function<Status(const std::string& call, Point point)> decide_;
  std::map<std::string, int> calls_;
  std::map<std::string, std::string> job_uids_;
  FaultyKubeClient client_;
  std::unique_ptr<KnativeBackend> backend_;
};

TEST_F(Knative, AGroupBecomesReadyInstances) {
  Start();
  ASSERT_TRUE(Ensure(Group(3)).ok());
  EXPECT_THAT(List(), IsEmpty());
  Settle();
  std::vector<FunctionInstance> instances = List();
  ASSERT_THAT(instances, SizeIs(3));
  for (const FunctionInstance& instance : instances) {
    EXPECT_EQ(instance.phase, FunctionPhase::kPending);
    EXPECT_EQ(instance.group, "workers");
  }
  MakeAllReady();
  instances = List();
  ASSERT_THAT(instances, SizeIs(3));
  std::set<std::string> addresses;
  for (const FunctionInstance& instance : instances) {
    EXPECT_EQ(instance.phase, FunctionPhase::kReady);
    EXPECT_THAT(instance.address, HasSubstr(":8012"));
    addresses.insert(instance.address);
  }
  EXPECT_THAT(addresses, SizeIs(3));
}

TEST_F(Knative, EnsuringTwiceAndAfterALostAnswerMakesOneService) {
  Start();
  int lost = 0;
  decide_ = [&](const std::string& call, Point point) {
    return call == "create" && point == Point::kAfter && lost++ < 2 ? UnavailableError("cut")
                                                                    : OkStatus();
  };
  EXPECT_EQ(Ensure(Group(2)).code(), StatusCode::kUnavailable);  // the Secret's answer
  EXPECT_EQ(Ensure(Group(2)).code(), StatusCode::kUnavailable);  // the Service's
  EXPECT_TRUE(Ensure(Group(2)).ok());
  Settle();
  EXPECT_TRUE(Ensure(Group(2)).ok());
  EXPECT_THAT(stand_in_.All(KnativeServiceType()), SizeIs(1));
  EXPECT_THAT(stand_in_.All(SecretType()), SizeIs(1));
  EXPECT_THAT(List(), SizeIs(2));
}

TEST_F(Knative, KeysStandInTheSecretAlone) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  EXPECT_THAT(stand_in_.All(KnativeServiceType())[0].dump(), Not(HasSubstr("secret-key")));
  EXPECT_THAT(stand_in_.All(SecretType())[0].dump(), HasSubstr("secret-key"));
}

TEST_F(Knative, JobsAndGroupsAreToldApart) {
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  ASSERT_TRUE(Ensure(Group(1, "servers")).ok());
  ASSERT_TRUE(Ensure(Group(3, "workers", "other")).ok());
  Settle();
  EXPECT_THAT(List(), SizeIs(3));
  EXPECT_THAT(List("other"), SizeIs(3));
  Do([&] { EXPECT_TRUE(backend_->DeleteGroup(JobUid("digits"), "workers").ok()); });
  RunFor(1);
  ASSERT_THAT(List(), SizeIs(1));
  EXPECT_EQ(List()[0].group, "servers");
  EXPECT_THAT(List("other"), SizeIs(3));
  EXPECT_THAT(stand_in_.All(SecretType()), SizeIs(2));
}

TEST_F(Knative, NoPodIsDeletedBeforeTheEndOfItsServiceHasReachedIt) {
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  Settle();
  int deleted = 0;
  decide_ = [&](const std::string& call, Point point) {
    deleted += call == "delete" && point == Point::kBefore ? 1 : 0;
    return OkStatus();
  };
  Do([&] { EXPECT_TRUE(backend_->DeleteGroup(JobUid("digits"), "workers").ok()); });
  EXPECT_EQ(deleted, 2);  // the Service and its Secret
}

TEST(PodInstances, APodThatEndsLaterThanItNeedsToIsHurriedOnce) {
  const auto pod = [](const Json& metadata) { return Json{{"metadata", metadata}}; };
  EXPECT_FALSE(EndsLater(pod(Json::object()), 5));
  EXPECT_TRUE(EndsLater(pod({{"deletionGracePeriodSeconds", 300}}), 5));
  EXPECT_FALSE(EndsLater(pod({{"deletionGracePeriodSeconds", 5}}), 5));
}

TEST_F(Knative, DeletingWhatIsNotThereIsNoError) {
  Start();
  Do([&] {
    EXPECT_TRUE(backend_->DeleteGroup(JobUid("digits"), "workers").ok());
    EXPECT_TRUE(backend_->DeleteInstance(JobUid("digits"), "nobody.0").ok());
  });
}

TEST_F(Knative, ACrashEndsOneInstanceAndBeginsAnother) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  MakeAllReady();
  const std::string first = List()[0].uid;
  const Json pod = stand_in_.All(PodType())[0];
  SetContainer(pod, {{"restartCount", 0}, {"state", Ended(137, "Error")}});
  ASSERT_THAT(List(), SizeIs(1));
  EXPECT_EQ(List()[0].phase, FunctionPhase::kGone);
  EXPECT_EQ(List()[0].reason, "Killed");
  SetContainer(pod, {{"restartCount", 1},
                     {"state", {{"running", Json::object()}}},
                     {"lastState", Ended(137, "OOMKilled")}});
  const std::vector<FunctionInstance> lives = List();
  ASSERT_THAT(lives, SizeIs(2));
  EXPECT_EQ(lives[0].uid, first);
  EXPECT_EQ(lives[0].phase, FunctionPhase::kGone);
  EXPECT_EQ(lives[0].reason, "OOMKilled");
  EXPECT_NE(lives[1].uid, first);
  EXPECT_EQ(lives[1].phase, FunctionPhase::kReady);
  // The end of the first life is not the end of the second.
  Do([&] { EXPECT_TRUE(backend_->DeleteInstance(JobUid("digits"), first).ok()); });
  EXPECT_THAT(stand_in_.All(PodType()), SizeIs(1));
  Do([&] { EXPECT_TRUE(backend_->DeleteInstance(JobUid("digits"), lives[1].uid).ok()); });
  EXPECT_THAT(stand_in_.All(PodType()), IsEmpty());
}

TEST_F(Knative, ACrashLoopingPodIsReplaced) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  const Json pod = stand_in_.All(PodType())[0];
  SetContainer(pod, {{"restartCount", 1},
                     {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}},
                     {"lastState", Ended(2, "Error")}});
  ASSERT_THAT(List(), SizeIs(1));
  EXPECT_EQ(List()[0].phase, FunctionPhase::kGone);
  EXPECT_EQ(List()[0].reason, "Exited 2");
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  ASSERT_THAT(stand_in_.All(PodType()), SizeIs(1));
  EXPECT_NE(UidOf(stand_in_.All(PodType())[0]), UidOf(pod));
}

TEST_F(Knative, AnotherScaleKeepsThePodsThatStay) {
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  Settle();
  const std::vector<FunctionInstance> before = List();
  ASSERT_TRUE(Ensure(Group(4)).ok());
  Settle();
  const std::vector<FunctionInstance> after = List();
  EXPECT_THAT(after, SizeIs(4));
  for (const FunctionInstance& instance : before) {
    EXPECT_TRUE(std::any_of(after.begin(), after.end(), [&](const FunctionInstance& other) {
      return other.uid == instance.uid;
    }));
  }
}

TEST_F(Knative, WhyAPodIsNotReadyIsTold) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  const Json pod = stand_in_.All(PodType())[0];
  stand_in_.SetStatus(pod, {{"conditions", Json::array({{{"type", "PodScheduled"},
                                                         {"status", "False"},
                                                         {"reason", "Unschedulable"},
                                                         {"message", "Insufficient memory"}}})}});
  RunFor(1);
  EXPECT_EQ(List()[0].reason, "Unschedulable: Insufficient memory");
  stand_in_.SetStatus(pod, {{"conditions", nullptr}});
  SetContainer(pod, {{"restartCount", 0},
                     {"state", {{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "m"}}}}}});
  EXPECT_EQ(List()[0].phase, FunctionPhase::kPending);
  EXPECT_EQ(List()[0].reason, "ImagePullBackOff: m");
}

TEST_F(Knative, AnUnreadyPodKeepsItsAddress) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  MakeAllReady();
  const FunctionInstance ready = List()[0];
  stand_in_.SetStatus(stand_in_.All(PodType())[0],
                      {{"conditions", Json::array({{{"type", "Ready"}, {"status", "False"}}})}});
  RunFor(1);
  EXPECT_EQ(List()[0].uid, ready.uid);
  EXPECT_EQ(List()[0].address, ready.address);
  EXPECT_EQ(List()[0].phase, FunctionPhase::kPending);
}

TEST_F(Knative, TheServiceOfAnEarlierJobOfThatNameIsWaitedFor) {
  Start();
  FunctionGroup old = Group(1);
  old.job_uid = JobUid("other");
  ASSERT_TRUE(Ensure(old).ok());
  const Status status = Ensure(Group(1));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("another job of the same name"));
}

TEST_F(Knative, OneWatchHoweverManyJobs) {
  Start();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(Ensure(Group(1, "workers", "job" + std::to_string(i))).ok());
  }
  Settle();
  const int before = calls_["list"];
  for (int i = 0; i < 50; ++i) EXPECT_THAT(List("job" + std::to_string(i)), SizeIs(1));
  EXPECT_EQ(calls_["list"], before);
  EXPECT_EQ(calls_["watch"], 1);
}

TEST_F(Knative, CapacityIsWhatNodesGiveAndNoLimitWhereTheyMayNotBeRead) {
  Start();
  const auto node = [](const std::string& name, const std::string& memory, bool closed) {
    return Json{{"apiVersion", "v1"},
                {"kind", "Node"},
                {"metadata", {{"name", name}}},
                {"spec", {{"unschedulable", closed}}},
                {"status", {{"allocatable", {{"memory", memory}}}}}};
  };
  Do([&] {
    decide_ = [](const std::string& call, Point) {
      return call == "list" ? PermissionDeniedError("no") : OkStatus();
    };
    EXPECT_EQ(backend_->Capacity()->memory_mib, 0);
    decide_ = nullptr;
    ASSERT_TRUE(server_.Create(NodeType(), node("a", "2097151Ki", false)).ok());
    ASSERT_TRUE(server_.Create(NodeType(), node("b", "4Gi", false)).ok());
    ASSERT_TRUE(server_.Create(NodeType(), node("c", "8Gi", true)).ok());
    EXPECT_EQ(backend_->Capacity()->memory_mib, 0);  // as it was a moment ago
    process_.runtime().clock.SleepFor(FromSeconds(31));
    EXPECT_EQ(backend_->Capacity()->memory_mib, 2047 + 4096);
  });
}

}  // namespace
}  // namespace lambdadnn
