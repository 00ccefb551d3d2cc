// SPDX-License-Identifier: Apache-2.0
// Credentials of a store for the functions of one job alone, in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/base64.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/resources/slice_requests.h"
#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class JobCredentialsTest : public testing::Test {
 protected:
  struct Given {
    std::string parent;
    std::string role;
    std::string session;
    std::string policy;
    Instant end;
  };

  explicit JobCredentialsTest(const FakeFunctionsOptions& functions = {}) : world_(functions) {
    EXPECT_TRUE(world_.server
                    .Create(SecretType(), {{"apiVersion", "v1"},
                                           {"kind", "Secret"},
                                           {"metadata", {{"name", "s3"}, {"namespace", "default"}}},
                                           {"data",
                                            {{"accessKeyId", EncodeBase64("users-key")},
                                             {"secretAccessKey", EncodeBase64("users-secret")},
                                             {"roleArn", EncodeBase64("arn:users-role")}}}})
                    .ok());
    world_.assume_role = [this](const StoreReference&, const StoreSecrets& secrets,
                                const AssumedRole& role) -> Result<TemporaryCredentials> {
      ++asked_;
      if (!refusal_.ok()) return refusal_;
      const double seconds = std::min<double>(role.duration_seconds, most_seconds_);
      const std::string name = "given-" + std::to_string(asked_);
      given_[name] = {secrets.credentials.access_key, secrets.credentials.role_arn,
                      role.session_name, role.policy,
                      world_.time.clock.Now() + FromSeconds(seconds)};
      return TemporaryCredentials{{name, "secret-of-" + name, "token-of-" + name}, seconds};
    };
    // What is given reaches what its policy names.
    world_.store_rule = [this](const std::string& key, std::string_view object) -> Status {
      const auto found = given_.find(key);
      if (object.ends_with("x/probe")) ++tried_;
      if (found == given_.end() || !keeps_to_policy_) return OkStatus();
      // A list has the prefix, or a key that begins with it, for an object.
      const std::string text(object);
      const std::string own = text.substr(0, text.find('/', text.find("default/") + 8));
      return found->second.policy.find(own + "/*") != std::string::npos
                 ? OkStatus()
                 : PermissionDeniedError("403");
    };
    world_.RestartController();
    job_ = JobWorld::MinimalJob();
    job_["spec"]["objectStore"] = {{"bucket", "training"},
                                   {"endpoint", "http://store"},
                                   {"credentialsSecretRef", {{"name", "s3"}}}};
    job_["spec"]["dataset"]["uri"] = "s3://data/mnist";
  }

  bool Runs(double seconds = 200) {
    world_.Create(job_);
    return world_.RunUntilFinished(seconds) && world_.Reason("Complete") == "True/TrainingFinished";
  }
  // Every slice's credentials outlive its budget; how many different ones there were.
  size_t ExpectSlicesEndBeforeTheirCredentials() {
    std::set<std::string> keys;
    for (const auto& [at, request] : world_.functions.requests()) {
      if (!request.credentials.has_value()) {
        ADD_FAILURE() << request.invocation << " brings no credentials";
        continue;
      }
      const std::string& key = request.credentials->access_key;
      keys.insert(key);
      EXPECT_GT(request.budget_seconds, 0);
      EXPECT_LT(at + FromSeconds(request.budget_seconds), given_.at(key).end);
    }
    return keys.size();
  }

  JobWorld world_;
  Json job_;
  int asked_ = 0;
  int tried_ = 0;
  Status refusal_;
  double most_seconds_ = 1e9;
  bool keeps_to_policy_ = true;
  std::map<std::string, Given> given_;
};

TEST_F(JobCredentialsTest, SlicesBringThemAndFunctionsHaveNoOthers) {
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.iteration >= 10; }, 100));
  ASSERT_FALSE(world_.functions.Live().empty());
  for (const std::string& uid : world_.functions.Live()) {
    const auto& environment = world_.functions.EnvironmentOf(uid);
    for (const char* name : {"ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"}) {
      EXPECT_FALSE(environment.contains(std::string("LAMBDADNN_S3_") + name)) << name;
    }
    EXPECT_EQ(environment.at("LAMBDADNN_S3_ENDPOINT"), "http://store");
  }
  ASSERT_TRUE(world_.RunUntilFinished(200));
  const JobStatus status = world_.Read().status;
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(status.store_credentials, kPerJobCredentials);
  EXPECT_EQ(status.store_credentials_message, "");
  EXPECT_EQ(status.model_digest, "digest-100");
  EXPECT_EQ(status.usage.restarts, 0);
  ExpectSlicesEndBeforeTheirCredentials();
  for (const auto& [name, one] : given_) {
    EXPECT_EQ(one.parent, "users-key");
    EXPECT_EQ(one.role, "arn:users-role");
    EXPECT_EQ(one.session, "lambdadnn-" + world_.Read().metadata.uid);
    EXPECT_THAT(one.policy, HasSubstr("training/" + JobPrefix(world_.Read()) + "/*"));
    EXPECT_THAT(one.policy, HasSubstr("arn:aws:s3:::data/mnist/*"));
  }
}

TEST_F(JobCredentialsTest, NobodyIsToldThem) {
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.iteration >= 10; }, 100));
  std::string told = world_.Described();
  ASSERT_TRUE(world_.RunUntilFinished(200));
  told += world_.Described();
  told += world_.server.Get(ServerlessTrainingJobType(), {"default", "digits"})->dump();
  for (const Json& event : world_.events) told += event.dump();
  for (const EventDraft& draft : world_.told) told += draft.note;
  for (const std::string& key : world_.Keys()) told += AsText(*world_.memory_store.Get(key, {}));
  for (const char* secret : {"given-", "secret-of-", "token-of-", "users-secret"}) {
    EXPECT_THAT(told, Not(HasSubstr(secret)));
  }
}

class ShortLivedTest : public JobCredentialsTest {
 protected:
  ShortLivedTest() : JobCredentialsTest({.iteration_seconds = 5}) {
    most_seconds_ = 200;  // of 500 that the job takes
  }
};

TEST_F(ShortLivedTest, AJobThatLastsLongerGetsOthersInTime) {
  ASSERT_TRUE(Runs(1500));
  EXPECT_GE(ExpectSlicesEndBeforeTheirCredentials(), 3u);
  EXPECT_EQ(world_.Read().status.model_digest, "digest-100");
  EXPECT_EQ(world_.Read().status.usage.restarts, 0);
  EXPECT_EQ(world_.Read().status.store_credentials, kPerJobCredentials);
}

TEST_F(ShortLivedTest, ANewControllerGivesThemToo) {
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.iteration >= 40; }, 600));
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(1500));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.usage.restarts, 0);
  ExpectSlicesEndBeforeTheirCredentials();
}

// Their user's key has become one that may not ask for them.
TEST_F(ShortLivedTest, WhatIsRefusedLaterFallsBackToTheSecret) {
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.iteration >= 10; }, 600));
  refusal_ = PermissionDeniedError("not for service accounts");
  const auto has_none = [&] {
    const auto& requests = world_.functions.requests();
    return !requests.back().second.credentials.has_value();
  };
  ASSERT_TRUE(world_.RunUntil(has_none, 600));
  // As a function answers that has no credentials.
  world_.functions.FailNext("worker-0", UnauthenticatedError("needs credentials"), true);
  ASSERT_TRUE(world_.RunUntilFinished(1500));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const JobStatus status = world_.Read().status;
  EXPECT_EQ(status.usage.restarts, 1);
  EXPECT_EQ(status.store_credentials, kSecretCredentials);
  EXPECT_EQ(status.store_credentials_message, "not for service accounts");
}

TEST_F(ShortLivedTest, AStoreThatDoesNotAnswerIsAskedAgain) {
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.iteration >= 10; }, 600));
  refusal_ = UnavailableError("503");
  const int before = asked_;
  ASSERT_TRUE(world_.RunUntil([&] { return asked_ > before + 6; }, 600));
  refusal_ = OkStatus();
  ASSERT_TRUE(world_.RunUntilFinished(1500));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.store_credentials, kPerJobCredentials);
  ExpectSlicesEndBeforeTheirCredentials();
}

TEST_F(JobCredentialsTest, TheFirstJobOfAStoreTriesThemOutForAll) {
  ASSERT_TRUE(Runs());
  EXPECT_EQ(tried_, 1);
  job_["metadata"]["name"] = "second";
  world_.Create(job_);
  ASSERT_TRUE(
      world_.RunUntil([&] { return HasCondition(world_.Read("second"), "Complete"); }, 200));
  EXPECT_EQ(world_.Read("second").status.store_credentials, kPerJobCredentials);
  EXPECT_EQ(tried_, 1);
}

class FallBackTest : public JobCredentialsTest {
 protected:
  void ExpectTheSecretsFor(const std::string& why) {
    const JobStatus status = world_.Read().status;
    EXPECT_EQ(status.store_credentials, kSecretCredentials);
    EXPECT_THAT(status.store_credentials_message, HasSubstr(why));
    EXPECT_EQ(status.model_digest, "digest-100");
    EXPECT_EQ(status.usage.restarts, 0);
    for (const auto& [at, request] : world_.functions.requests()) {
      EXPECT_FALSE(request.credentials.has_value());
    }
  }
};

TEST_F(FallBackTest, AStoreThatGivesNoneSaysWhy) {
  refusal_ = PermissionDeniedError("not for service accounts");
  ASSERT_TRUE(Runs());
  EXPECT_EQ(asked_, 1);
  ExpectTheSecretsFor("not for service accounts");
}

TEST_F(FallBackTest, WhatReachesBeyondItsPolicyIsNotUsed) {
  keeps_to_policy_ = false;
  ASSERT_TRUE(Runs());
  ExpectTheSecretsFor("beyond their policy");
}

TEST_F(FallBackTest, WhatDoesNotReachTheJobsOwnIsNotUsed) {
  world_.store_rule = [](const std::string& key, std::string_view) {
    return key.starts_with("given-") ? PermissionDeniedError("403") : OkStatus();
  };
  ASSERT_TRUE(Runs());
  ExpectTheSecretsFor("with the credentials that the store gave: 403");
}

TEST_F(FallBackTest, ForAMomentTooFewToBeOfUse) {
  most_seconds_ = 60;
  ASSERT_TRUE(Runs());
  ExpectTheSecretsFor("for 60 s only");
}

TEST_F(FallBackTest, AJobWithoutAPolicyAsksForNone) {
  job_["spec"]["dataset"]["uri"] = "s3://data";
  ASSERT_TRUE(Runs());
  EXPECT_EQ(asked_, 0);
  ExpectTheSecretsFor("root of bucket data");
}

TEST_F(FallBackTest, AMomentsTroubleSaysNothingAboutTheNextJob) {
  refusal_ = UnavailableError("503");
  ASSERT_TRUE(Runs());
  EXPECT_EQ(asked_, 3);
  ExpectTheSecretsFor("503");
  refusal_ = OkStatus();
  job_["metadata"]["name"] = "second";
  world_.Create(job_);
  ASSERT_TRUE(
      world_.RunUntil([&] { return HasCondition(world_.Read("second"), "Complete"); }, 200));
  EXPECT_EQ(world_.Read("second").status.store_credentials, kPerJobCredentials);
}

TEST_F(FallBackTest, WithoutASecretTheyAreTheOperators) {
  refusal_ = UnimplementedError("none here");
  job_["spec"]["objectStore"].erase("credentialsSecretRef");
  ASSERT_TRUE(Runs());
  EXPECT_EQ(world_.Read().status.store_credentials, kOperatorCredentials);
}

// Jobs of several tenants in the operator's store, none of which brings a Secret.
class OperatorStoreTest : public JobCredentialsTest {
 protected:
  OperatorStoreTest() : JobCredentialsTest({.iteration_seconds = 5}) {
    TenantRules rules;
    rules.uri = "s3://training";
    rules.endpoint = "http://store";
    rules.readable = {"s3://data"};
    world_.options.tenants = rules;
    world_.RestartController();
    job_["spec"].erase("objectStore");
  }
  void Expose() {
    world_.options.tenants->expose_operator_credentials = true;
    world_.RestartController();
  }
  // Its access key, as JobWorld hands it to the controller.
  bool AnyFunctionHasTheOperatorsKey() {
    for (const std::string& uid : world_.functions.Live()) {
      for (const auto& [name, value] : world_.functions.EnvironmentOf(uid)) {
        if (value == "the operator's") return true;
      }
    }
    return false;
  }
  void ExpectRefused(const std::string& why) {
    world_.Create(job_);
    bool exposed = false;
    ASSERT_TRUE(world_.RunUntil(
        [&] {
          exposed = exposed || AnyFunctionHasTheOperatorsKey();
          return HasCondition(world_.Read(), kConditionFailed);
        },
        100));
    EXPECT_FALSE(exposed);
    EXPECT_EQ(world_.Reason("Failed"), "True/NoJobCredentials");
    EXPECT_THAT(FindCondition(world_.Read(), kConditionFailed)->message,
                AllOf(HasSubstr(why), HasSubstr("spec.objectStore.credentialsSecretRef")));
    EXPECT_TRUE(world_.functions.requests().empty());
    EXPECT_TRUE(world_.functions.Live().empty());
  }
};

TEST_F(OperatorStoreTest, JobsRunWithWhatTheStoreGivesForThem) {
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.iteration >= 10; }, 300));
  EXPECT_FALSE(world_.functions.Live().empty());
  EXPECT_FALSE(AnyFunctionHasTheOperatorsKey());
  ASSERT_TRUE(world_.RunUntilFinished(1500));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.store_credentials, kPerJobCredentials);
}

TEST_F(OperatorStoreTest, AStoreThatGivesNoneFailsThem) {
  refusal_ = UnimplementedError("the store has no AssumeRole");
  ExpectRefused("the store has no AssumeRole");
}

TEST_F(OperatorStoreTest, NamesThatNoPolicyCanHoldFailThem) {
  for (const char* name : {"a*b", "a?b", "a$b"}) {
    job_["spec"]["dataset"]["uri"] = std::string("s3://data/") + name;
    ExpectRefused(std::string("'data/") + name + "' has one of * ? $ in its name");
    world_.Delete();
    ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  }
  EXPECT_EQ(asked_, 0);
}

TEST_F(OperatorStoreTest, APolicyThatIsTooLongFailsThem) {
  job_["spec"]["dataset"]["uri"] = "s3://data/" + std::string(900, 'x');
  job_["spec"]["checkpoint"]["resumeFrom"] = "s3://data/" + std::string(900, 'y');
  ExpectRefused("are the most");
}

TEST_F(OperatorStoreTest, AMomentsTroubleIsWaitedFor) {
  refusal_ = UnavailableError("503");
  world_.Create(job_);
  EXPECT_FALSE(world_.RunUntilFinished(100));
  EXPECT_EQ(world_.Reason("Accepted"), "False/StoreNotUsable");
  refusal_ = OkStatus();
  EXPECT_TRUE(world_.RunUntilFinished(1500));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(OperatorStoreTest, ARefusalLaterIsWaitedForAndThenFailsThem) {
  most_seconds_ = 200;
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.iteration >= 10; }, 600));
  refusal_ = PermissionDeniedError("the key is disabled");
  const auto degraded = [&] { return world_.Reason("Degraded") == "True/CredentialsRefused"; };
  ASSERT_TRUE(world_.RunUntil(degraded, 600));
  EXPECT_FALSE(AnyFunctionHasTheOperatorsKey());
  refusal_ = OkStatus();
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Degraded") == "False/Recovered"; }, 300));
  refusal_ = PermissionDeniedError("the key is disabled");
  ASSERT_TRUE(world_.RunUntil(degraded, 600));
  ASSERT_TRUE(world_.RunUntilFinished(world_.options.credentials_seconds + 100));
  EXPECT_EQ(world_.Reason("Failed"), "True/NoJobCredentials");
  EXPECT_FALSE(world_.Keys().empty()) << "checkpoints stay";
}

TEST_F(OperatorStoreTest, StatusCannotAskForTheOperatorsKey) {
  refusal_ = UnimplementedError("none here");
  for (const char* told : {"Operator", "Secret", "PerJob", "Anything"}) {
    world_.Create(job_);
    const Json status = {{"objectStore", {{"credentials", told}, {"capabilities", Json::array()}}},
                         {"startTime", "2026-01-31T12:00:00Z"}};
    ASSERT_TRUE(world_.server
                    .Patch(ServerlessTrainingJobType(), {"default", "digits"}, {{"status", status}},
                           Subresource::kStatus)
                    .ok());
    bool exposed = false;
    ASSERT_TRUE(world_.RunUntil(
        [&] {
          exposed = exposed || AnyFunctionHasTheOperatorsKey();
          return HasCondition(world_.Read(), kConditionFailed);
        },
        world_.options.credentials_seconds + 100))
        << told;
    EXPECT_FALSE(exposed) << told;
    EXPECT_EQ(world_.Reason("Failed"), "True/NoJobCredentials") << told;
    EXPECT_TRUE(world_.functions.requests().empty()) << told;
    world_.Delete();
    ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  }
}

TEST_F(OperatorStoreTest, AnOperatorThatIsToldToGivesItsKeyAway) {
  Expose();
  refusal_ = UnimplementedError("none here");
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.iteration >= 10; }, 300));
  EXPECT_TRUE(AnyFunctionHasTheOperatorsKey());
  ASSERT_TRUE(world_.RunUntilFinished(1500));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.store_credentials, kOperatorCredentials);
}

TEST_F(OperatorStoreTest, FunctionsOfFilesHaveNoKeyEither) {
  world_.options.tenants->uri = "file:///store";
  world_.options.tenants->readable = {"file:///data"};
  world_.RestartController();
  job_["spec"]["dataset"]["uri"] = "file:///data";
  world_.Create(job_);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.iteration >= 10; }, 300));
  EXPECT_FALSE(world_.functions.Live().empty());
  EXPECT_FALSE(AnyFunctionHasTheOperatorsKey());
}

TEST_F(JobCredentialsTest, FilesHaveNone) {
  job_["spec"]["objectStore"] = {{"uri", "file:///store"}};
  ASSERT_TRUE(Runs());
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(world_.Read().status.store_credentials, "");
}

}  // namespace
}  // namespace lambdadnn
