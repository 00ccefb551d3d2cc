// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/openfaas/openfaas_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "operator/resources/function_groups.h"
#include "operator/resources/job_children.h"
#include "tests/support/openfaas_stand_in.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class OpenFaas : public AtStandIn {
 protected:
  OpenFaas()
      : client_(server_,
                [this](const std::string& call, const std::string& name,
                       FaultyKubeClient::Point) -> Status {
                  if (forbid_pods_ && (name == "pods" || call == "watch"))
                    return PermissionDeniedError("no");
                  if (forbid_deleting_ && call == "delete") return PermissionDeniedError("no");
                  return OkStatus();
                }) {}
  ~OpenFaas() override { (void)backend_.release(); }  // its fibers go with the scheduler

  void Start(OpenFaasBackend::Options options = {}) {
    options.gateway.endpoint = {.scheme = "http", .host = "gateway", .port = 8080};
    options.functions.images.worker = "worker:1";
    options.functions.images.server = "server:1";
    Do([&] {
      backend_ = std::make_unique<OpenFaasBackend>(client_, process_.runtime(), gateway_.Connect(),
                                                   std::move(options));
    });
    RunFor(1);
  }
  static JobIdentity Identity(const std::string& job = "digits",
                              const std::string& space = "team") {
    return {"uid-of-" + space + "-" + job, space, job};
  }
  static FunctionGroup Group(int count, const std::string& name = "workers",
                             const JobIdentity& job = Identity()) {
    FunctionGroup group;
    group.job_uid = job.uid;
    group.namespace_name = job.namespace_name;
    group.job_name = job.name;
    group.name = name;
    group.program = name == "servers" ? FunctionProgram::kServer : FunctionProgram::kWorker;
    group.count = count;
    group.memory_mib = 512;
    group.milli_cpu = 250;
    group.environment = {{"LAMBDADNN_JOB_KEY", "secret-key"}};
    return group;
  }
  Status Ensure(const FunctionGroup& group) {
    Status status;
    Do([&] { status = backend_->EnsureGroup(group); });
    return status;
  }
  Status Delete(const std::string& group, const JobIdentity& job = Identity()) {
    Status status;
    Do([&] { status = backend_->DeleteGroup(job, group); });
    return status;
  }
  std::vector<FunctionInstance> List(const JobIdentity& job = Identity()) {
    std::vector<FunctionInstance> instances;
    Do([&] { instances = backend_->List(job).value(); });
    return instances;
  }
  // What Kubernetes does next, and what the watch has seen then.
  void Settle(bool ready = false) {
    Do([&] {
      gateway_.Reconcile();
      if (ready) gateway_.MakeAllReady();
    });
    RunFor(3);
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& [name, function] : gateway_.functions) names.insert(name);
    return names;
  }

  bool forbid_pods_ = false;
  bool forbid_deleting_ = false;
  FaultyKubeClient client_;
  OpenFaasStandIn gateway_{server_};
  std::unique_ptr<OpenFaasBackend> backend_;
};

TEST_F(OpenFaas, AFunctionARankIsReachedThroughTheGateway) {
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  ASSERT_TRUE(Ensure(Group(1, "servers")).ok());
  EXPECT_THAT(Names(),
              UnorderedElementsAre("digits-worker-0", "digits-worker-1", "digits-server-0"));
  EXPECT_EQ(gateway_.secrets.size(), 2u);  // the key, for each group
  Settle();
  ASSERT_EQ(List().size(), 3u);
  EXPECT_EQ(List()[0].phase, FunctionPhase::kPending);
  Settle(true);
  std::set<std::string> endpoints;
  for (const FunctionInstance& each : List()) {
    EXPECT_EQ(each.phase, FunctionPhase::kReady);
    endpoints.insert(each.endpoint.Text());
  }
  EXPECT_THAT(endpoints,
              UnorderedElementsAre("http://gateway:8080/function/digits-worker-0.openfaas-fn",
                                   "http://gateway:8080/function/digits-worker-1.openfaas-fn",
                                   "http://gateway:8080/function/digits-server-0.openfaas-fn"));
}

TEST_F(OpenFaas, WhatIsRightIsListedAndNotWritten) {
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  const size_t calls = gateway_.calls.size();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Ensure(Group(2)).ok());
  EXPECT_LE(gateway_.calls.size(), calls + 2) << "one list, however often it is asked for";
  RunFor(40);
  ASSERT_TRUE(Ensure(Group(2)).ok());
  EXPECT_EQ(gateway_.calls.back(), "GET /system/functions");
}

TEST_F(OpenFaas, WhatIsDeletedBehindTheOperatorsBackIsMadeAgain) {
  Start();
  ASSERT_TRUE(Ensure(Group(3)).ok());
  gateway_.functions.erase("digits-worker-1");
  RunFor(3);
  ASSERT_TRUE(Ensure(Group(3)).ok());
  EXPECT_EQ(gateway_.functions.size(), 3u);
}

TEST_F(OpenFaas, AGroupThatShrinksLosesItsLastFunctions) {
  Start();
  ASSERT_TRUE(Ensure(Group(3)).ok());
  RunFor(3);
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  EXPECT_THAT(Names(), UnorderedElementsAre("digits-worker-0"));
}

TEST_F(OpenFaas, ADeletedGroupLeavesNoFunctionAndNoSecret) {
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  ASSERT_TRUE(Ensure(Group(1, "servers")).ok());
  Settle(true);
  ASSERT_TRUE(Delete("workers").ok());
  Settle();
  EXPECT_THAT(Names(), UnorderedElementsAre("digits-server-0"));
  EXPECT_EQ(gateway_.secrets.size(), 1u);
  Do([&] { ASSERT_TRUE(backend_->ReleaseJob(Identity()).ok()); });
  Settle();
  EXPECT_TRUE(gateway_.functions.empty());
  EXPECT_TRUE(gateway_.secrets.empty());
  EXPECT_TRUE(List().empty());
}

// Its name is free again once its pods are gone.
TEST_F(OpenFaas, AFunctionThatIsStillBeingDeletedIsWaitedFor) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle(true);
  ASSERT_TRUE(Delete("workers").ok());
  const Status waits = Ensure(Group(1));
  EXPECT_EQ(waits.code(), StatusCode::kUnavailable);
  EXPECT_THAT(waits.message(), HasSubstr("digits-worker-0 is being deleted"));
  ASSERT_TRUE(Delete("workers").ok()) << "asking twice does no harm";
  Settle();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  EXPECT_FALSE(gateway_.functions.at("digits-worker-0").deleted);
}

TEST_F(OpenFaas, JobsOfOneNameInTwoNamespacesKeepApart) {
  Start();
  const JobIdentity other = Identity("digits", "others");
  ASSERT_TRUE(Ensure(Group(1)).ok());
  ASSERT_TRUE(Ensure(Group(1, "workers", other)).ok());
  ASSERT_EQ(gateway_.functions.size(), 2u);
  Settle(true);
  ASSERT_EQ(List().size(), 1u);
  ASSERT_EQ(List(other).size(), 1u);
  EXPECT_NE(List()[0].endpoint, List(other)[0].endpoint);
  ASSERT_TRUE(Delete("workers", other).ok());
  Settle();
  EXPECT_THAT(Names(), UnorderedElementsAre("digits-worker-0"));
  EXPECT_EQ(gateway_.secrets.size(), 1u);
}

TEST_F(OpenFaas, WhatIsNotTheJobsStaysAsItIs) {
  Start();
  gateway_.Put("digits-worker-0", {{"team", "users"}});
  gateway_.other_objects = {"digits-worker-1"};
  gateway_.secrets["lambdadnn-users"] = "x";
  ASSERT_TRUE(Ensure(Group(2)).ok());
  EXPECT_EQ(gateway_.functions.size(), 3u);
  EXPECT_EQ(gateway_.functions.at("digits-worker-0").request["image"], "user:1");
  ASSERT_TRUE(Delete("workers").ok());
  Do([&] { ASSERT_TRUE(backend_->ReleaseJob(Identity()).ok()); });
  Settle();
  EXPECT_THAT(Names(), UnorderedElementsAre("digits-worker-0"));
  EXPECT_EQ(gateway_.secrets.size(), 1u);
}

TEST_F(OpenFaas, TheEditionBoundsPlansAndGroups) {
  gateway_.info = R"({"provider":{"provider":"faas-netes-ce","version":{"release":"0.18.17"}}})";
  gateway_.Put("users-own", Json::object());
  Start();
  Do([&] {
    const ClusterLimits limits = backend_->Limits("team", PodTemplate()).value();
    EXPECT_EQ(limits.max_functions, 14);
    EXPECT_THAT(limits.max_functions_source,
                HasSubstr("edition of OpenFaaS less 1 of other users"));
    EXPECT_EQ(backend_->Capacity()->functions, 15);
  });
  ASSERT_TRUE(Ensure(Group(14)).ok());
  const Status refused = Ensure(Group(1, "servers"));
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("15 of the 15 functions"));
  EXPECT_EQ(gateway_.functions.size(), 15u);
}

TEST_F(OpenFaas, ABoundThatNobodyToldOfIsOneOfCapacity) {
  gateway_.most_functions = 2;
  Start();
  const Status refused = Ensure(Group(3));
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("--openfaas-max-functions"));
}

TEST_F(OpenFaas, PreflightRefusesWhatAFunctionCannotHave) {
  Start();
  Do([&] {
    EXPECT_TRUE(backend_->Preflight(Group(2)).ok());
    FunctionGroup group = Group(2);
    group.pods.tolerations = Json::array({Json::object()});
    EXPECT_EQ(backend_->Preflight(group).code(), StatusCode::kFailedPrecondition);
  });
  EXPECT_TRUE(gateway_.functions.empty());
}

TEST_F(OpenFaas, ATimeoutThatARequestDoesNotFitInIsRefusedBeforeAnythingStarts) {
  Start({.place = {.timeout_seconds = 1}});
  Do([&] {
    const Status refused = backend_->Preflight(Group(2));
    EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(refused.message(), HasSubstr("is 1 s, and a request to a function takes up to 2 s; "
                                             "set it to 5 s or more"));
  });
  EXPECT_TRUE(gateway_.functions.empty());
}

TEST_F(OpenFaas, AnImageThatTheEditionRefusesIsToldWithTheNextStep) {
  gateway_.refuses_images = true;
  Start();
  const Status refused = Ensure(Group(1));
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented) << "asking again is in vain";
  EXPECT_THAT(refused.message(), HasSubstr("only allows public images; push the image to a"));
}

TEST_F(OpenFaas, FunctionsConnectAtTheAddressesOfTheirPods) {
  Start();
  FunctionGroup group = Group(1);
  group.environment[kPeerPortVariable] = std::to_string(kPeerPort);
  ASSERT_TRUE(Ensure(group).ok());
  Settle(true);
  EXPECT_EQ(List()[0].peer_address, "10.244.1.7:8444");
}

TEST_F(OpenFaas, WrongCredentialsAreToldBeforeAnythingStarts) {
  gateway_.credentials = "admin:word";
  Start();
  Do([&] {
    EXPECT_EQ(backend_->Preflight(Group(2)).code(), StatusCode::kUnauthenticated);
    EXPECT_EQ(backend_->Limits("team", PodTemplate()).status().code(),
              StatusCode::kUnauthenticated);
  });
  EXPECT_EQ(Ensure(Group(2)).code(), StatusCode::kUnauthenticated);
}

TEST_F(OpenFaas, WhileTheGatewayIsAwayPodsAreSeenAndNothingIsDeletedByHalves) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle(true);
  gateway_.away = true;
  EXPECT_EQ(List().size(), 1u);
  EXPECT_EQ(Delete("workers").code(), StatusCode::kUnavailable);
  gateway_.away = false;
  EXPECT_TRUE(Delete("workers").ok());
}

TEST_F(OpenFaas, WhatTheGatewayDoesNotDeleteIsNamedAndKeepsNothingElse) {
  Start();
  FunctionGroup group = Group(2);
  group.environment["LAMBDADNN_S3_SECRET_ACCESS_KEY"] = "another";
  ASSERT_TRUE(Ensure(group).ok());
  Settle(true);
  gateway_.undeletable = {"digits-worker-0", gateway_.secrets.begin()->first};
  const Status kept = Delete("workers");
  EXPECT_THAT(kept.message(), HasSubstr("function digits-worker-0: DELETE http://gateway:8080/"));
  Settle();
  EXPECT_THAT(Names(), UnorderedElementsAre("digits-worker-0"));
  gateway_.undeletable.erase("digits-worker-0");
  const Status secret = Delete("workers");
  EXPECT_THAT(secret.message(), HasSubstr("secret " + gateway_.secrets.begin()->first + ": "));
  EXPECT_EQ(gateway_.secrets.size(), 1u);
}

TEST_F(OpenFaas, WherePodsMayNotBeReadTheGatewayCounts) {
  forbid_pods_ = true;
  Start();
  ASSERT_TRUE(Ensure(Group(2)).ok());
  RunFor(3);
  std::vector<FunctionInstance> instances = List();
  ASSERT_EQ(instances.size(), 2u);
  EXPECT_EQ(instances[0].phase, FunctionPhase::kPending);
  EXPECT_THAT(instances[0].Why(), HasSubstr("may not read pods in namespace openfaas-fn"));
  for (auto& [name, function] : gateway_.functions) function.available = 1;
  RunFor(3);
  instances = List();
  EXPECT_EQ(instances[0].phase, FunctionPhase::kReady);
  EXPECT_EQ(instances[0].group, "workers");
  EXPECT_EQ(instances[0].endpoint.path, "/function/digits-worker-0.openfaas-fn");
  EXPECT_EQ(instances[0].peer_address, "") << "nobody knows it";
  const std::string uid = instances[0].uid;
  Do([&] { ASSERT_TRUE(backend_->DeleteInstance(Identity(), uid).ok()); });
  EXPECT_EQ(List()[0].phase, FunctionPhase::kTerminating);
  gateway_.functions.erase("digits-worker-0");
  RunFor(3);
  ASSERT_TRUE(Ensure(Group(2)).ok());
  EXPECT_NE(List()[0].uid, uid) << "another function of the name is another instance";
}

TEST_F(OpenFaas, WherePodsMayNotBeDeletedTheFunctionIs) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle(true);
  forbid_deleting_ = true;
  const std::string uid = List()[0].uid;
  Do([&] { ASSERT_TRUE(backend_->DeleteInstance(Identity(), uid).ok()); });
  EXPECT_TRUE(gateway_.functions.at("digits-worker-0").deleted);
}

}  // namespace
}  // namespace lambdadnn
