// SPDX-License-Identifier: Apache-2.0
// The account and the policy of a job at an in-memory API server, in virtual time.
#include "operator/backends/kubernetes/job_isolation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kinds/serverless_training_job.h"
#include "operator/resources/job_account.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Isolation : public AtStandIn {
 protected:
  using Point = FaultyKubeClient::Point;

  Isolation()
      : client_(server_, [this](const std::string& call, const std::string& name, Point point) {
          if (point == Point::kBefore) ++calls_[call];
          return decide_ ? decide_(call, name, point) : OkStatus();
        }) {
    const Json job = {{"apiVersion", "lambdadnn.io/v1alpha1"},
                      {"kind", "ServerlessTrainingJob"},
                      {"metadata", {{"name", "digits"}, {"namespace", "team"}}}};
    group_.job_uid = UidOf(server_.Create(ServerlessTrainingJobType(), job).value());
    group_.namespace_name = "team";
    group_.job_name = "digits";
    group_.name = "workers";
    group_.program = FunctionProgram::kWorker;
    group_.environment = {{"LAMBDADNN_S3_ENDPOINT", "http://minio:9000"}};
    Json defaults = {{"apiVersion", "v1"},
                     {"kind", "ServiceAccount"},
                     {"metadata", {{"name", "default"}, {"namespace", "team"}}},
                     {"imagePullSecrets", Json::array({{{"name", "registry"}}})}};
    EXPECT_TRUE(server_.Create(ServiceAccountType(), defaults).ok());
  }
  ~Isolation() override {
    for (auto& each : all_) (void)each.release();  // their fibers go with the scheduler
  }

  static JobNetworkOptions Network(const std::string& address = "192.0.2.1/32") {
    JobNetworkOptions network;
    network.operators = Json::array({{{"ipBlock", {{"cidr", address}}}}});
    return network;
  }
  // Of a process that starts now; the one before does nothing more.
  void Start(std::optional<JobNetworkOptions> network = Network()) {
    Do([&] {
      all_.push_back(std::make_unique<JobIsolation>(
          client_, process_.runtime(),
          JobIsolation::Options{
              .network = std::move(network),
              .pull_secrets = pull_secrets_,
              .record_event = [this](EventDraft draft) { events_.push_back(std::move(draft)); }}));
    });
    RunFor(1);
  }
  Result<std::string> Ensure() {
    Result<PodIdentity> identity = UnavailableError("not asked");
    Do([&] { identity = all_.back()->Ensure(group_); });
    if (!identity.ok()) return identity.status();
    named_by_pods_ = identity->pull_secrets;
    return identity->account;
  }
  void Keep() {
    Do([&] { all_.back()->Keep(group_.job_uid); });
    RunFor(1);
  }
  Status Release() {
    Status status;
    Do([&] { status = all_.back()->Release("team", "digits", group_.job_uid); });
    RunFor(1);
    return status;
  }
  std::vector<Json> Policies() { return stand_in_.All(NetworkPolicyType()); }
  std::vector<std::string> PullSecretsOfAccount() { return PullSecretsIn(Account().value()); }
  Result<Json> Account() { return server_.Get(ServiceAccountType(), {"team", kName}); }
  void DeletePolicy() {
    ASSERT_TRUE(server_.Delete(NetworkPolicyType(), {"team", kName}, "").ok());
    RunFor(10);
  }
  void Forbid(const std::string& call, const std::string& name) {
    decide_ = [=](const std::string& asked, const std::string& of, Point point) {
      const bool hit = point == Point::kBefore && asked == call && of == name;
      return hit ? PermissionDeniedError("may not") : OkStatus();
    };
  }

  static constexpr const char* kName = "digits-lambdadnn";
  std::function<Status(const std::string&, const std::string&, Point)> decide_;
  FaultyKubeClient client_;
  FunctionGroup group_;
  std::vector<std::string> pull_secrets_;
  std::vector<std::string> named_by_pods_;
  std::vector<EventDraft> events_;
  std::vector<std::unique_ptr<JobIsolation>> all_;
};

TEST_F(Isolation, AJobGetsAnAccountAndAPolicyOnce) {
  Start();
  EXPECT_EQ(Ensure().value(), kName);
  RunFor(10);
  group_.name = "servers";
  EXPECT_EQ(Ensure().value(), kName);
  ASSERT_THAT(Policies(), SizeIs(1));
  EXPECT_EQ(Policies()[0]["spec"], JobNetworkPolicy(group_, Network())["spec"]);
  EXPECT_EQ(Account()->at("imagePullSecrets")[0]["name"], "registry");
  EXPECT_EQ(calls_["create"], 2);
  EXPECT_EQ(calls_["update"], 0);
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(Isolation, TheAccountOfAJobNamesWhatTheOperatorPullsWith) {
  pull_secrets_ = {"operators", "registry"};
  Start();
  EXPECT_EQ(Ensure().value(), kName);
  EXPECT_THAT(PullSecretsOfAccount(), ElementsAre("registry", "operators"));
  EXPECT_THAT(named_by_pods_, IsEmpty()) << "pods that name any lose the account's";
}

TEST_F(Isolation, PodsNameWhatAnAccountThatWasThereLacks) {
  Start();
  EXPECT_EQ(Ensure().value(), kName);
  pull_secrets_ = {"operators"};
  Start();  // an operator that was told more
  EXPECT_EQ(Ensure().value(), kName);
  EXPECT_THAT(PullSecretsOfAccount(), ElementsAre("registry"));
  EXPECT_THAT(named_by_pods_, ElementsAre("registry", "operators"));
}

TEST_F(Isolation, PodsOfAnAccountOfTheJobsOwnKeepItsSecretsBesideTheOperators) {
  pull_secrets_ = {"operators"};
  Json mine = {{"apiVersion", "v1"},
               {"kind", "ServiceAccount"},
               {"metadata", {{"name", "mine"}, {"namespace", "team"}}},
               {"imagePullSecrets", Json::array({{{"name", "own"}}})}};
  ASSERT_TRUE(server_.Create(ServiceAccountType(), mine).ok());
  Start();
  group_.pods.service_account_name = "mine";
  EXPECT_EQ(Ensure().value(), "mine");
  EXPECT_THAT(named_by_pods_, ElementsAre("own", "operators"));
  group_.pods.service_account_name = "nobody";
  EXPECT_EQ(Ensure().value(), "nobody");
  EXPECT_THAT(named_by_pods_, ElementsAre("operators"));
}

TEST_F(Isolation, WithoutTheRightToAccountsPodsNameTheOperatorsSecrets) {
  pull_secrets_ = {"operators"};
  Start();
  decide_ = [](const std::string& call, const std::string& name, Point) {
    const bool account = name == kName || name == "default";
    return account && call != "list" ? PermissionDeniedError("may not") : OkStatus();
  };
  EXPECT_EQ(Ensure().value(), "");
  EXPECT_THAT(named_by_pods_, ElementsAre("operators"));
}

TEST_F(Isolation, LostAnswersMakeNothingTwice) {
  Start();
  int lost = 0;
  decide_ = [&](const std::string& call, const std::string&, Point point) {
    return call == "create" && point == Point::kAfter && lost++ < 2 ? UnavailableError("cut")
                                                                    : OkStatus();
  };
  EXPECT_EQ(Ensure().status().code(), StatusCode::kUnavailable);  // the account's
  EXPECT_EQ(Ensure().status().code(), StatusCode::kUnavailable);  // the policy's
  EXPECT_EQ(Ensure().value(), kName);
  EXPECT_THAT(Policies(), SizeIs(1));
}

TEST_F(Isolation, AnAccountThatTheJobNamesIsUsedInstead) {
  Start();
  group_.pods.service_account_name = "mine";
  EXPECT_EQ(Ensure().value(), "mine");
  EXPECT_EQ(Account().status().code(), StatusCode::kNotFound);
  EXPECT_THAT(Policies(), SizeIs(1));
}

TEST_F(Isolation, WithoutNetworkOptionsThereIsNoPolicy) {
  Start(std::nullopt);
  EXPECT_EQ(Ensure().value(), kName);
  Keep();
  EXPECT_THAT(Policies(), IsEmpty());
  EXPECT_TRUE(Release().ok());
  EXPECT_EQ(Account().status().code(), StatusCode::kNotFound);
}

TEST_F(Isolation, ADeletedPolicyComesBackUnderTheRunningJob) {
  Start();
  ASSERT_TRUE(Ensure().ok());
  RunFor(10);
  const int before = calls_["create"];
  Keep();
  EXPECT_EQ(calls_["create"], before) << "nothing is written while all is well";
  DeletePolicy();
  Keep();
  ASSERT_THAT(Policies(), SizeIs(1));
  EXPECT_EQ(Policies()[0]["spec"], JobNetworkPolicy(group_, Network())["spec"]);
}

TEST_F(Isolation, TheNextLeaderMakesItAnewAsItWas) {
  Start();
  ASSERT_TRUE(Ensure().ok());
  Start();
  DeletePolicy();
  Keep();
  ASSERT_THAT(Policies(), SizeIs(1));
  EXPECT_EQ(Policies()[0]["spec"], JobNetworkPolicy(group_, Network())["spec"]);
  EXPECT_EQ(OwnerUids(Policies()[0]), std::vector<std::string>({group_.job_uid}));
}

TEST_F(Isolation, AChangedPolicyIsSetRightWithItsLists) {
  Start();
  ASSERT_TRUE(Ensure().ok());
  Json changed = Policies()[0];
  changed["spec"]["ingress"].push_back(Json::object());  // admits everything
  changed["spec"]["podSelector"]["matchLabels"]["more"] = "x";
  ASSERT_TRUE(server_.Update(NetworkPolicyType(), changed, Subresource::kNone).ok());
  RunFor(10);
  Keep();
  EXPECT_EQ(Policies()[0]["spec"], JobNetworkPolicy(group_, Network())["spec"]);
}

TEST_F(Isolation, AnOperatorWithOtherOptionsChangesThePolicy) {
  Start();
  ASSERT_TRUE(Ensure().ok());
  Start(Network("192.0.2.2/32"));
  ASSERT_TRUE(Ensure().ok());
  EXPECT_THAT(Policies()[0]["spec"].dump(),
              AllOf(HasSubstr("192.0.2.2/32"), testing::Not(HasSubstr("192.0.2.1/32"))));
}

TEST_F(Isolation, ASpecThatTheServerWritesInItsOwnWayIsWrittenOnce) {
  // Left out where there is nothing to say, as the real server does.
  JobNetworkOptions network = Network();
  network.extra_egress = Json::array({{{"to", Json::array()}}});
  Start(network);
  decide_ = [&](const std::string& call, const std::string& name, Point point) {
    if (call == "create" && name == kName && point == Point::kAfter && Policies().size() == 1) {
      Json kept = Policies()[0];
      kept["spec"]["egress"].back() = Json::object();
      EXPECT_TRUE(server_.Update(NetworkPolicyType(), kept, Subresource::kNone).ok());
    }
    return OkStatus();
  };
  ASSERT_TRUE(Ensure().ok());
  RunFor(10);
  ASSERT_TRUE(Ensure().ok());  // once more, which the server writes as it likes
  RunFor(10);
  const int updates = calls_["update"];
  for (int i = 0; i < 5; ++i) {
    RunFor(10);
    Keep();
  }
  EXPECT_LE(updates, 1);
  EXPECT_EQ(calls_["update"], updates);
}

TEST_F(Isolation, WhatIsSomebodyElsesIsNeitherTakenNorDeleted) {
  Start();
  Json foreign = JobAccount(group_, Json::array());
  foreign["metadata"].erase("labels");
  foreign["metadata"].erase("ownerReferences");
  ASSERT_TRUE(server_.Create(ServiceAccountType(), foreign).ok());
  const Status refused = Ensure().status();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("ServiceAccount digits-lambdadnn"), HasSubstr("in namespace team")));
  EXPECT_TRUE(Release().ok());
  EXPECT_TRUE(Account().ok());
}

TEST_F(Isolation, WhatIsLeftOfAJobOfThatNameBeforeMakesWay) {
  Start();
  FunctionGroup before = group_;
  before.job_uid = "gone";
  Json old = JobNetworkPolicy(before, Network());
  old["metadata"].erase("ownerReferences");
  ASSERT_TRUE(server_.Create(NetworkPolicyType(), old).ok());
  Json account = JobAccount(before, {});
  account["metadata"].erase("ownerReferences");  // as a backup restores it
  ASSERT_TRUE(server_.Create(ServiceAccountType(), account).ok());
  RunFor(1);
  // One at an attempt.
  EXPECT_EQ(Ensure().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Ensure().status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(Ensure().ok());
  EXPECT_TRUE(IsOfJob(Policies()[0], group_.job_uid));
  EXPECT_TRUE(IsOfJob(Account().value(), group_.job_uid));
}

TEST_F(Isolation, ReleaseTakesBothAwayAndTheyStayAway) {
  Start();
  ASSERT_TRUE(Ensure().ok());
  EXPECT_TRUE(Release().ok());
  EXPECT_THAT(Policies(), IsEmpty());
  EXPECT_EQ(Account().status().code(), StatusCode::kNotFound);
  RunFor(10);
  Keep();
  EXPECT_THAT(Policies(), IsEmpty());
  EXPECT_TRUE(Release().ok()) << "again";
  EXPECT_TRUE(Ensure().ok()) << "a job that goes on";
  EXPECT_THAT(Policies(), SizeIs(1));
}

TEST_F(Isolation, AJobThatMayHaveNoPolicyRunsAndItIsToldOnce) {
  Start();
  decide_ = [&](const std::string& call, const std::string&, Point point) {
    const bool write = call == "create" && calls_["create"] > 1;  // after the account's
    return write && point == Point::kBefore ? PermissionDeniedError("may not") : OkStatus();
  };
  EXPECT_EQ(Ensure().value(), kName);
  const int tried = calls_["create"];
  RunFor(10);
  EXPECT_EQ(Ensure().value(), kName);
  Keep();
  EXPECT_EQ(calls_["create"], tried) << "not at every look";
  RunFor(120);
  EXPECT_EQ(Ensure().value(), kName);
  EXPECT_GT(calls_["create"], tried) << "rights may have been given meanwhile";
  ASSERT_THAT(events_, SizeIs(1));
  EXPECT_EQ(events_[0].reason, "JobNotIsolated");
  EXPECT_TRUE(events_[0].warning);
  EXPECT_EQ(events_[0].regarding["uid"], group_.job_uid);
  EXPECT_EQ(events_[0].regarding["name"], "digits");
  EXPECT_EQ(events_[0].regarding["namespace"], "team");
  EXPECT_THAT(events_[0].note, AllOf(HasSubstr("NetworkPolicy"), HasSubstr("may not")));
}

TEST_F(Isolation, AJobThatMayHaveNoAccountRunsAsTheDefaultOne) {
  for (const char* call : {"get", "create"}) {
    Forbid(call, kName);
    Start(std::nullopt);
    EXPECT_EQ(Ensure().value(), "") << call;
    EXPECT_EQ(Ensure().value(), "") << call;
  }
  ASSERT_THAT(events_, SizeIs(2)) << "one a process";
  EXPECT_THAT(events_[0].note, HasSubstr("ServiceAccount"));
  EXPECT_TRUE(Release().ok());
}

TEST_F(Isolation, PoliciesThatMayNotBeWatchedAreWrittenAllTheSame) {
  decide_ = [](const std::string& call, const std::string&, Point point) {
    return call == "list" && point == Point::kBefore ? PermissionDeniedError("may not")
                                                     : OkStatus();
  };
  Start();
  EXPECT_EQ(Ensure().value(), kName);
  EXPECT_THAT(Policies(), SizeIs(1));
  RunFor(10);
  EXPECT_EQ(Ensure().value(), kName);
  EXPECT_THAT(Policies(), SizeIs(1));
}

}  // namespace
}  // namespace lambdadnn
