// SPDX-License-Identifier: Apache-2.0
// The Knative backend against a stand-in for Knative, in virtual time.
#include "operator/backends/knative/knative_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "operator/backends/kubernetes/pod_instances.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_children.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

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
    EXPECT_THAT(instance.endpoint.Text(), HasSubstr(":8012"));
    addresses.insert(instance.endpoint.Text());
  }
  EXPECT_THAT(addresses, SizeIs(3));
}

TEST_F(Knative, PodsWithACertificateAreReachedOverTlsAndEarlierOnesAsBefore) {
  Start();
  const FunctionGroup earlier = Group(1, "servers");
  FunctionGroup group = Group(1);
  group.environment[kTlsCertificateVariable] = "certificate";
  ASSERT_TRUE(Ensure(earlier).ok());
  ASSERT_TRUE(Ensure(group).ok());
  Settle();
  MakeAllReady();
  const std::vector<FunctionInstance> instances = List();
  ASSERT_THAT(instances, SizeIs(2));
  for (const FunctionInstance& instance : instances) {
    EXPECT_EQ(instance.phase, FunctionPhase::kReady);
    const bool tls = instance.group == "workers";
    EXPECT_EQ(instance.endpoint.IsTls(), tls) << instance.group;
    EXPECT_EQ(instance.endpoint.port, tls ? 8443 : 8012) << instance.group;
  }
}

TEST_F(Knative, WithAddressingServiceEachFunctionHasAServiceOfItsOwn) {
  Start();
  FunctionGroup group = Group(3);
  group.addressing = Addressing::kService;
  ASSERT_TRUE(Ensure(group).ok());
  EXPECT_THAT(stand_in_.All(KnativeServiceType()), SizeIs(3));
  Settle();
  MakeAllReady();
  // Ready, but what is before them does not know them yet.
  for (const FunctionInstance& instance : List()) {
    EXPECT_EQ(instance.phase, FunctionPhase::kPending);
    EXPECT_EQ(instance.reason, "RouteNotReady");
  }
  stand_in_.FailRevisions();
  RunFor(1);
  EXPECT_EQ(List()[0].phase, FunctionPhase::kPending) << "there was no route yet";
  stand_in_.MakeRoutes();
  RunFor(1);
  // As if the container had ended for good and its restart were ready.
  stand_in_.FailRevisions();
  RunFor(1);
  std::set<std::string> addresses;
  for (const FunctionInstance& instance : List()) {
    EXPECT_EQ(instance.phase, FunctionPhase::kReady);
    EXPECT_EQ(instance.group, "workers");
    addresses.insert(instance.endpoint.Text());
  }
  EXPECT_THAT(addresses,
              testing::ElementsAre("digits-workers-0.team.svc:80", "digits-workers-1.team.svc:80",
                                   "digits-workers-2.team.svc:80"));
  // A smaller group keeps its first members.
  group.count = 1;
  ASSERT_TRUE(Ensure(group).ok());
  RunFor(1);
  ASSERT_THAT(List(), SizeIs(1));
  EXPECT_EQ(List()[0].endpoint.Text(), "digits-workers-0.team.svc:80");
  // Of another group nothing goes with it.
  FunctionGroup servers = Group(1, "servers");
  servers.addressing = group.addressing;
  ASSERT_TRUE(Ensure(servers).ok());
  Do([&] { EXPECT_TRUE(backend_->DeleteGroup(Identity("digits"), "workers").ok()); });
  ASSERT_THAT(stand_in_.All(KnativeServiceType()), SizeIs(1));
  EXPECT_EQ(NameOf(stand_in_.All(KnativeServiceType())[0]).name, "digits-servers-0");
  EXPECT_THAT(stand_in_.All(SecretType()), SizeIs(1));
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

TEST_F(Knative, PodsRunAsTheAccountOfTheirJobBehindItsPolicy) {
  KnativeBackend::Options options;
  options.network.emplace();
  Start(options);
  ASSERT_TRUE(Ensure(Group(1)).ok());
  const Json made = stand_in_.All(KnativeServiceType())[0]["spec"]["template"];
  EXPECT_EQ(made["spec"]["serviceAccountName"], "digits-lambdadnn");
  ASSERT_THAT(stand_in_.All(NetworkPolicyType()), SizeIs(1));
  RunFor(10);
  ASSERT_TRUE(server_.Delete(NetworkPolicyType(), {"team", "digits-lambdadnn"}, "").ok());
  RunFor(10);
  EXPECT_THAT(List(), IsEmpty());
  EXPECT_THAT(stand_in_.All(NetworkPolicyType()), SizeIs(1));
  Do([&] { EXPECT_TRUE(backend_->ReleaseJob(Identity("digits")).ok()); });
  EXPECT_THAT(stand_in_.All(NetworkPolicyType()), IsEmpty());
  EXPECT_THAT(stand_in_.All(ServiceAccountType()), IsEmpty());
}

TEST_F(Knative, PodsPullWithTheOperatorsSecretsAndTheirOwn) {
  KnativeBackend::Options options;
  options.pull_secrets = {"operators"};
  Start(options);
  ASSERT_TRUE(Ensure(Group(1)).ok());
  const auto pod = [&](size_t service) {
    return stand_in_.All(KnativeServiceType()).at(service)["spec"]["template"]["spec"];
  };
  EXPECT_FALSE(pod(0).contains("imagePullSecrets")) << "the account has them";
  ASSERT_THAT(stand_in_.All(ServiceAccountType()), SizeIs(1));
  EXPECT_EQ(stand_in_.All(ServiceAccountType())[0]["imagePullSecrets"],
            Json::array({{{"name", "operators"}}}));
  FunctionGroup other = Group(1, "workers", "other");
  other.pods.service_account_name = "mine";
  other.pods.image_pull_secrets = {"own"};
  ASSERT_TRUE(Ensure(other).ok());
  EXPECT_EQ(pod(1)["imagePullSecrets"], Json::array({{{"name", "own"}}, {{"name", "operators"}}}));
}

TEST_F(Knative, JobsAndGroupsAreToldApart) {
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  ASSERT_TRUE(Ensure(Group(1, "servers")).ok());
  ASSERT_TRUE(Ensure(Group(3, "workers", "other")).ok());
  Settle();
  EXPECT_THAT(List(), SizeIs(3));
  EXPECT_THAT(List("other"), SizeIs(3));
  Do([&] { EXPECT_TRUE(backend_->DeleteGroup(Identity("digits"), "workers").ok()); });
  RunFor(1);
  ASSERT_THAT(List(), SizeIs(1));
  EXPECT_EQ(List()[0].group, "servers");
  EXPECT_THAT(List("other"), SizeIs(3));
  EXPECT_THAT(stand_in_.All(SecretType()), SizeIs(2));
}

TEST_F(Knative, PodsEndBeforeTheirServiceWithoutTheAccountThatOthersWouldNeed) {
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  Settle();
  std::vector<std::pair<size_t, size_t>> there;  // accounts and Services, before each deletion
  decide_ = [&](const std::string& call, Point point) {
    if (call == "delete" && point == Point::kBefore) {
      there.emplace_back(stand_in_.All(ServiceAccountType()).size(),
                         stand_in_.All(KnativeServiceType()).size());
    }
    return OkStatus();
  };
  Do([&] { EXPECT_TRUE(backend_->DeleteGroup(Identity("digits"), "workers").ok()); });
  // The account, two pods, the Service, its Secret.
  const std::vector<std::pair<size_t, size_t>> wanted = {{1, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 0}};
  EXPECT_EQ(there, wanted);
  RunFor(1);
  EXPECT_THAT(List(), IsEmpty());
  // What is made anew has an account again.
  ASSERT_TRUE(Ensure(Group(1)).ok());
  EXPECT_THAT(stand_in_.All(ServiceAccountType()), SizeIs(1));
}

TEST_F(Knative, NoPodOfAUsersAccountIsDeletedBeforeTheEndOfItsServiceHasReachedIt) {
  ASSERT_TRUE(
      server_
          .Create(ServiceAccountType(), {{"apiVersion", "v1"},
                                         {"kind", "ServiceAccount"},
                                         {"metadata", {{"name", "mine"}, {"namespace", "team"}}}})
          .ok());
  Start();
  FunctionGroup group = Group(2);
  group.pods.service_account_name = "mine";
  ASSERT_TRUE(Ensure(group).ok());
  Settle();
  int deleted = 0;
  decide_ = [&](const std::string& call, Point point) {
    deleted += call == "delete" && point == Point::kBefore ? 1 : 0;
    return OkStatus();
  };
  Do([&] { EXPECT_TRUE(backend_->DeleteGroup(Identity("digits"), "workers").ok()); });
  EXPECT_EQ(deleted, 2);  // the Service and its Secret
}

TEST_F(Knative, DeletingWhatIsNotThereIsNoError) {
  Start();
  Do([&] {
    EXPECT_TRUE(backend_->DeleteGroup(Identity("digits"), "workers").ok());
    EXPECT_TRUE(backend_->DeleteInstance(Identity("digits"), "nobody.0").ok());
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
  EXPECT_EQ(List()[0].end, FunctionEnd::kByPlatform);
  SetContainer(pod, {{"restartCount", 1},
                     {"state", {{"running", Json::object()}}},
                     {"lastState", Ended(137, "OOMKilled")}});
  const std::vector<FunctionInstance> lives = List();
  ASSERT_THAT(lives, SizeIs(2));
  EXPECT_EQ(lives[0].uid, first);
  EXPECT_EQ(lives[0].phase, FunctionPhase::kGone);
  EXPECT_EQ(lives[0].reason, "OOMKilled");
  EXPECT_EQ(lives[0].end, FunctionEnd::kOutOfMemory);
  EXPECT_NE(lives[1].uid, first);
  EXPECT_EQ(lives[1].phase, FunctionPhase::kReady);
  // Deleting the first instance does not delete the second.
  Do([&] { EXPECT_TRUE(backend_->DeleteInstance(Identity("digits"), first).ok()); });
  EXPECT_THAT(stand_in_.All(PodType()), SizeIs(1));
  Do([&] { EXPECT_TRUE(backend_->DeleteInstance(Identity("digits"), lives[1].uid).ok()); });
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
  EXPECT_EQ(List()[0].end, FunctionEnd::kByItself);
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

TEST_F(Knative, ARevisionWhosePodAutoscalerIsStillToComeIsAsItWasMade) {
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  Settle();
  const Json autoscaler = stand_in_.All(PodAutoscalerType())[0];
  ASSERT_TRUE(server_.Delete(PodAutoscalerType(), NameOf(autoscaler), "").ok());
  RunFor(10);
  EXPECT_TRUE(Ensure(Group(2)).ok());
  EXPECT_EQ(Ensure(Group(3)).code(), StatusCode::kUnavailable);
}

TEST_F(Knative, AScaleThatIsTakenBackIsTheOneThatStands) {
  Start();
  for (const int count : {2, 4, 2}) {
    ASSERT_TRUE(Ensure(Group(count)).ok());
    Settle();
    EXPECT_THAT(List(), SizeIs(count));
  }
  // Also for an operator that comes later, and knows nothing of it.
  const auto without_ages = [&] {
    std::vector<FunctionInstance> instances = List();
    for (FunctionInstance& instance : instances) instance.age_seconds = 0;
    return instances;
  };
  const std::vector<FunctionInstance> before = without_ages();
  Do([&] { backend_.reset(); });
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  Settle();
  EXPECT_EQ(without_ages(), before);
}

TEST_F(Knative, ASecretThatIsLeftWithoutItsServiceIsMadeAnew) {
  Start();
  decide_ = [&](const std::string& call, Point point) {
    return call == "create" && point == Point::kAfter ? UnavailableError("cut") : OkStatus();
  };
  EXPECT_FALSE(Ensure(Group(1)).ok());  // made, and the answer lost
  decide_ = nullptr;
  FunctionGroup later = Group(1);
  later.environment["LAMBDADNN_JOB_KEY"] = "another-key";
  ASSERT_TRUE(Ensure(later).ok());
  ASSERT_THAT(stand_in_.All(SecretType()), SizeIs(1));
  EXPECT_THAT(stand_in_.All(SecretType())[0].dump(), HasSubstr("another-key"));
}

// Labels are anybody's to write.
TEST_F(Knative, PodsOfAnotherNamespaceOrOfNoControllerAreNoFunctions) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  const Json pod = stand_in_.All(PodType())[0];
  for (const bool elsewhere : {true, false}) {
    Json forged = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"spec", pod["spec"]}};
    forged["metadata"] = {{"name", "forged"},
                          {"namespace", elsewhere ? "others" : "team"},
                          {"labels", pod["metadata"]["labels"]}};
    if (elsewhere) forged["metadata"]["ownerReferences"] = pod["metadata"]["ownerReferences"];
    const Result<Json> made = server_.Create(PodType(), forged);
    ASSERT_TRUE(made.ok());
    stand_in_.MakeReady(*made);
  }
  MakeAllReady();
  ASSERT_THAT(List(), SizeIs(1));
  EXPECT_THAT(List()[0].uid, HasSubstr(UidOf(pod)));
  Do([&] { EXPECT_TRUE(backend_->DeleteGroup(Identity("digits"), "workers").ok()); });
  // That of the other namespace goes with its owner.
  ASSERT_THAT(stand_in_.All(PodType()), SizeIs(1));
  EXPECT_EQ(NameOf(stand_in_.All(PodType())[0]), (ObjectName{"team", "forged"}));
}

class UsersObject : public Knative {
 protected:
  void Make(const ResourceType& type, const std::string& version, const Json& fields) {
    Json object = {{"apiVersion", version},
                   {"kind", type.kind},
                   {"metadata",
                    {{"name", "digits-workers"},
                     {"namespace", "team"},
                     {"labels", {{"lambdadnn.io/job-uid", JobUid("digits")}}}}}};
    object.update(fields);
    ASSERT_TRUE(server_.Create(type, object).ok());
  }
  void ExpectRefusedAndKept(const ResourceType& type) {
    const std::string before = stand_in_.All(type)[0].dump();
    const Status ensured = Ensure(Group(2));
    EXPECT_EQ(ensured.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(ensured.message(), HasSubstr("digits-workers of namespace team is not of job"));
    Do([&] { EXPECT_TRUE(backend_->DeleteGroup(Identity("digits"), "workers").ok()); });
    ASSERT_THAT(stand_in_.All(type), SizeIs(1));
    EXPECT_EQ(stand_in_.All(type)[0].dump(), before);
  }
};

TEST_F(UsersObject, ASecretOfTheNameIsNeitherReplacedNorDeleted) {
  Start();
  Make(SecretType(), "v1", {{"data", {{"mine", "eA=="}}}});
  ExpectRefusedAndKept(SecretType());
}

TEST_F(UsersObject, AServiceOfTheNameIsNeitherUsedNorDeleted) {
  Start();
  Make(KnativeServiceType(), "serving.knative.dev/v1", {{"spec", Json::object()}});
  ExpectRefusedAndKept(KnativeServiceType());
}

// As a backup restores it: with the labels of the lost job, without its owner.
TEST_F(UsersObject, OneThatWasRestoredWithoutItsOwnerIsReplaced) {
  Start();
  for (const ResourceType* type : {&SecretType(), &KnativeServiceType()}) {
    const std::string version = type->group.empty() ? "v1" : "serving.knative.dev/v1";
    Json object = {{"apiVersion", version},
                   {"kind", type->kind},
                   {"metadata",
                    {{"name", "digits-workers"},
                     {"namespace", "team"},
                     {"labels", ChildLabels("digits", "a-lost-uid")}}}};
    if (!type->group.empty()) object["spec"] = Json::object();
    ASSERT_TRUE(server_.Create(*type, object).ok());
  }
  EXPECT_EQ(Ensure(Group(1)).code(), StatusCode::kUnavailable);
  ASSERT_TRUE(Ensure(Group(1)).ok());
  for (const ResourceType* type : {&SecretType(), &KnativeServiceType()}) {
    ASSERT_THAT(stand_in_.All(*type), SizeIs(1));
    EXPECT_TRUE(IsOwnedByJob(stand_in_.All(*type)[0], JobUid("digits")));
  }
}

TEST_F(UsersObject, ASecretThatTakesThePlaceOfTheJobsStays) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  ASSERT_TRUE(server_.Delete(SecretType(), {"team", "digits-workers"}, "").ok());
  Make(SecretType(), "v1", {{"data", {{"mine", "eA=="}}}});
  Do([&] { EXPECT_TRUE(backend_->DeleteGroup(Identity("digits"), "workers").ok()); });
  EXPECT_THAT(stand_in_.All(KnativeServiceType()), IsEmpty());
  EXPECT_THAT(stand_in_.All(SecretType()), SizeIs(1));
}

TEST_F(Knative, ADeletedPodOfALostNodeIsGoneOnceItIsOverdue) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  MakeAllReady();
  DeleteOnALostNode(stand_in_.All(PodType())[0]);
  RunFor(50);
  ASSERT_THAT(List(), SizeIs(1));
  EXPECT_EQ(List()[0].phase, FunctionPhase::kTerminating);
  RunFor(50);
  ASSERT_THAT(List(), SizeIs(1));
  EXPECT_EQ(List()[0].phase, FunctionPhase::kGone);
  EXPECT_THAT(List()[0].reason, HasSubstr("NodeLost"));
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
  EXPECT_EQ(List()[0].Why(), "Unschedulable: Insufficient memory");
  stand_in_.SetStatus(pod, {{"conditions", nullptr}});
  SetContainer(pod, {{"restartCount", 0},
                     {"state", {{"waiting", {{"reason", "ImagePullBackOff"}, {"message", "m"}}}}}});
  EXPECT_EQ(List()[0].phase, FunctionPhase::kPending);
  EXPECT_EQ(List()[0].reason, "ImagePullBackOff");
  EXPECT_EQ(List()[0].Why(), "ImagePullBackOff: m");
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
  EXPECT_EQ(List()[0].endpoint, ready.endpoint);
  EXPECT_EQ(List()[0].phase, FunctionPhase::kPending);
}

TEST_F(Knative, TheServiceOfAnEarlierJobOfThatNameMakesWay) {
  Start();
  FunctionGroup old = Group(1);
  old.job_uid = JobUid("other");
  ASSERT_TRUE(Ensure(old).ok());
  FunctionGroup next = Group(1);
  Status status = Ensure(next);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("ServiceAccount"));
  next.pods.service_account_name = "mine";  // which is no job's
  status = Ensure(next);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("another job of the same name"));
  EXPECT_TRUE(Ensure(next).ok());
  Settle();
  EXPECT_THAT(List(), SizeIs(1));
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
  EXPECT_EQ(calls_["watch"], 3);  // functions, nodes, and what other pods request on them
}

}  // namespace
}  // namespace lambdadnn
