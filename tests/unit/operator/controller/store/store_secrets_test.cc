// SPDX-License-Identifier: Apache-2.0
// Secrets of a job's store that change while the operator runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/base64.h"
#include "common/base/files.h"
#include "operator/controller/store/store_access.h"
#include "tests/support/job_world.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(StoreEnvironment, FunctionsElsewhereGetWhatTheFileOfAuthoritiesSays) {
  const std::string file = MakeTempDir() + "/ca.crt";
  ASSERT_TRUE(WriteFileAtomically(file, "PEM").ok());
  EXPECT_EQ(StoreEnvironment(file).at("LAMBDADNN_S3_CA_FILE"), file);
  const auto environment = PortableStoreEnvironment(file);
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment->at("LAMBDADNN_S3_CA_PEM"), "PEM");
  EXPECT_FALSE(environment->contains("LAMBDADNN_S3_CA_FILE"));
  EXPECT_EQ(PortableStoreEnvironment("")->count("LAMBDADNN_S3_CA_PEM"), 0u);
  const auto missing = PortableStoreEnvironment(file + "-missing");
  EXPECT_THAT(missing.status().message(), HasSubstr(file + "-missing"));
}

class StoreSecretsTest : public testing::Test {
 protected:
  StoreSecretsTest() {
    MakeSecret("s3", "old");
    Json job = JobWorld::MinimalJob();
    job["spec"]["objectStore"]["credentialsSecretRef"]["name"] = "s3";
    world_.Create(job);
  }
  void MakeSecret(const std::string& name, const std::string& key) {
    Json secret = {{"apiVersion", "v1"},
                   {"kind", "Secret"},
                   {"metadata", {{"name", name}, {"namespace", "default"}}}};
    secret.update(Holding(key));
    EXPECT_TRUE(world_.server.Create(SecretType(), secret).ok());
  }
  // Points the job to another Secret.
  void Use(const std::string& secret) {
    world_.Patch({{"spec", {{"objectStore", {{"credentialsSecretRef", {{"name", secret}}}}}}}});
  }
  static Json Holding(const std::string& key) {
    return {{"data",
             {{"accessKeyId", EncodeBase64(key)}, {"secretAccessKey", EncodeBase64("s-" + key)}}}};
  }
  void Change(const std::string& key) {
    EXPECT_TRUE(
        world_.server.Patch(SecretType(), {"default", "s3"}, Holding(key), Subresource::kNone)
            .ok());
  }
  bool RunUntilIteration(int64_t iteration) {
    return world_.RunUntil([&] { return world_.Read().status.progress.iteration >= iteration; },
                           60);
  }
  std::string KeyOfFunctions() {
    std::string keys;
    for (const std::string& uid : world_.functions.Live()) {
      const std::string key = world_.functions.EnvironmentOf(uid).at("LAMBDADNN_S3_ACCESS_KEY_ID");
      if (keys.find(key) == std::string::npos) keys += key;
    }
    return keys;
  }

  JobWorld world_;
};

TEST_F(StoreSecretsTest, AnswersOfTheStoreToAWrongOneAreToldUntilItIsRight) {
  world_.store_key = "new";
  EXPECT_FALSE(RunUntilIteration(1));
  EXPECT_EQ(world_.Reason("Accepted"), "False/StoreNotUsable");
  const Job job = world_.Read();
  EXPECT_THAT(FindCondition(job, "Accepted")->message, HasSubstr("the access key is unknown"));
  Change("new");
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(StoreSecretsTest, FunctionsThatAreRefusedGetTheNewOne) {
  ASSERT_TRUE(RunUntilIteration(30));
  EXPECT_EQ(KeyOfFunctions(), "old");
  world_.store_key = "new";
  Change("new");
  world_.functions.FailNext("worker-0", UnauthenticatedError("the access key is unknown"), true);
  ASSERT_TRUE(world_.RunUntil([&] { return KeyOfFunctions() == "new"; }, 60));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job job = world_.Read();
  EXPECT_EQ(job.status.usage.restarts, 1);
  EXPECT_EQ(job.status.model_digest, "digest-100");
}

TEST_F(StoreSecretsTest, ARefusalThatNoChangeExplainsFailsTheJob) {
  ASSERT_TRUE(RunUntilIteration(30));
  world_.functions.FailNext("worker-0", UnauthenticatedError("the access key is unknown"), true);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Failed"), "True/SliceFailed");
}

// Who led before knew what they were started with; this process does not.
TEST_F(StoreSecretsTest, FunctionsOfAnEarlierProcessThatAreRefusedAreReplaced) {
  ASSERT_TRUE(RunUntilIteration(30));
  world_.store_key = "new";
  Change("new");
  world_.RestartController();
  ASSERT_TRUE(RunUntilIteration(40));
  EXPECT_EQ(KeyOfFunctions(), "old");
  world_.functions.FailNext("worker-0", UnauthenticatedError("the access key is unknown"), true);
  ASSERT_TRUE(world_.RunUntil([&] { return KeyOfFunctions() == "new"; }, 60));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.usage.restarts, 1);
  EXPECT_EQ(world_.Read().status.model_digest, "digest-100");
}

TEST_F(StoreSecretsTest, ARefusalThatNobodyHeardBeforeTheRestartReplacesThemToo) {
  ASSERT_TRUE(RunUntilIteration(30));
  world_.store_key = "new";
  Change("new");
  world_.functions.FailNext("worker-0", UnauthenticatedError("the access key is unknown"), true);
  world_.time.clock.SleepFor(FromSeconds(5));
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(KeyOfFunctions(), "");
}

TEST_F(StoreSecretsTest, WhoIsRefusedWithTheCredentialsOfNowFailsTheJob) {
  ASSERT_TRUE(RunUntilIteration(30));
  world_.RestartController();
  ASSERT_TRUE(RunUntilIteration(40));
  const Status refusal = UnauthenticatedError("the access key is unknown");
  world_.functions.FailNext("worker-0", refusal, true);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.usage.restarts == 1; }, 60));
  world_.functions.FailNext("worker-0", refusal, true);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Failed"), "True/SliceFailed");
}

TEST_F(StoreSecretsTest, FunctionsThatAreRefusedGetWhatAnotherSecretSays) {
  for (const bool restarted : {false, true}) {
    if (restarted) {
      world_.Delete();
      ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 120));
      world_.store_key = "";
      Json job = JobWorld::MinimalJob();
      job["spec"]["objectStore"]["credentialsSecretRef"]["name"] = "s3";
      world_.Create(job);
    } else {
      MakeSecret("s3-next", "next");
    }
    ASSERT_TRUE(RunUntilIteration(30));
    Use("s3-next");
    world_.store_key = "next";
    if (restarted) world_.RestartController();
    world_.functions.FailNext("worker-0", UnauthenticatedError("the access key is unknown"), true);
    ASSERT_TRUE(world_.RunUntil([&] { return KeyOfFunctions() == "next"; }, 60)) << restarted;
    ASSERT_TRUE(world_.RunUntilFinished(200));
    EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
    EXPECT_EQ(world_.Read().status.execution.failures, 0);
    EXPECT_EQ(world_.Read().status.model_digest, "digest-100");
  }
}

TEST_F(StoreSecretsTest, AnotherSecretIsReadAtOnceAndDisturbsNobody) {
  world_.options.secrets_seconds = 1e6;
  world_.RestartController();
  ASSERT_TRUE(RunUntilIteration(10));
  MakeSecret("s3-next", "next");
  Use("s3-next");
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.store_secrets.credentials.access_key, "next");
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.usage.restarts, 0);
}

TEST_F(StoreSecretsTest, ASecretThatIsNotThereYetIsWaitedFor) {
  ASSERT_TRUE(RunUntilIteration(30));
  Use("s3-next");
  EXPECT_FALSE(world_.RunUntilFinished(120)) << "whether the model is there is not known";
  MakeSecret("s3-next", "next");
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

class StoreEndpointTest : public StoreSecretsTest {
 protected:
  static constexpr const char* kOld = "https://old.example:9000";
  static constexpr const char* kNew = "https://new.example:9000";

  StoreEndpointTest() {
    TenantRules rules;
    rules.readable = {"file:///data"};
    world_.options.tenants = rules;
    world_.RestartController();
    Json job = JobWorld::MinimalJob();
    job["metadata"]["name"] = "moved";
    job["spec"]["objectStore"] = {
        {"bucket", "training"}, {"endpoint", kOld}, {"credentialsSecretRef", {{"name", "s3"}}}};
    world_.Delete();
    EXPECT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
    world_.Create(job);
  }
  bool RunUntilIteration(int64_t iteration) {
    return world_.RunUntil(
        [&] { return world_.Read("moved").status.progress.iteration >= iteration; }, 60);
  }
  void MoveTo(const char* endpoint) {
    world_.Patch({{"spec", {{"objectStore", {{"endpoint", endpoint}}}}}}, "moved");
  }
  bool RunUntilFinished() {
    return world_.RunUntil(
        [&] {
          return !(world_.Reason("Complete", "moved") + world_.Reason("Failed", "moved")).empty();
        },
        200);
  }
};

TEST_F(StoreEndpointTest, FunctionsThatFailAreReplacedByOthersThatKnowTheNewAddress) {
  world_.Patch({{"spec", {{"backoffLimit", 0}}}}, "moved");
  ASSERT_TRUE(RunUntilIteration(30));
  const std::vector<std::string> before = world_.functions.Live();
  MoveTo(kNew);
  ASSERT_TRUE(RunUntilIteration(40));
  EXPECT_EQ(world_.functions.Live(), before) << "those that run are not disturbed";
  world_.functions.FailNext("worker-0", UnavailableError("connection refused"), false);
  ASSERT_TRUE(world_.RunUntil(
      [&] {
        return world_.functions.Live().size() == before.size() && world_.functions.Live() != before;
      },
      60));
  for (const std::string& uid : world_.functions.Live()) {
    EXPECT_EQ(world_.functions.EnvironmentOf(uid).at("LAMBDADNN_S3_ENDPOINT"), kNew);
  }
  ASSERT_TRUE(RunUntilFinished());
  EXPECT_EQ(world_.Reason("Complete", "moved"), "True/TrainingFinished");
  EXPECT_EQ(world_.functions.requests().front().second.store.endpoint, kOld);
  EXPECT_EQ(world_.functions.requests().back().second.store.endpoint, kNew);
}

TEST_F(StoreEndpointTest, AnAddressThatJobsMayNotReachFailsTheJob) {
  ASSERT_TRUE(RunUntilIteration(10));
  MoveTo("http://169.254.169.254");
  ASSERT_TRUE(RunUntilFinished());
  EXPECT_EQ(world_.Reason("Failed", "moved"), "True/StoreNotAllowed");
}

// Not of the job's own making.
TEST_F(StoreSecretsTest, AChangedSecretDoesNotCountAgainstTheBackoffLimit) {
  world_.Patch({{"spec", {{"backoffLimit", 0}}}});
  ASSERT_TRUE(RunUntilIteration(30));
  Change("new");
  world_.functions.FailNext("worker-0", UnauthenticatedError("the access key is unknown"), true);
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.failures, 0);
}

TEST_F(StoreSecretsTest, ProfilingFunctionsThatAreRefusedGetTheNewOne) {
  for (const bool restarted : {false, true}) {
    Json job = JobWorld::MinimalJob();
    job["metadata"]["name"] = restarted ? "second" : "first";
    job["spec"].erase("profile");
    job["spec"]["aggregation"] = JobWorld::DedicatedServers();
    job["spec"]["objective"] = {{"deadlineSeconds", 600}};
    job["spec"]["objectStore"]["credentialsSecretRef"]["name"] = "s3";
    const std::string& name = job["metadata"]["name"].get_ref<const std::string&>();
    world_.Create(job);
    ASSERT_TRUE(
        world_.RunUntil([&] { return !world_.functions.InstanceOf("profile-0").empty(); }, 120));
    Change(restarted ? "third" : "new");
    if (restarted) world_.RestartController();
    world_.functions.FailNext("profile-0", UnauthenticatedError("the access key is unknown"), true);
    ASSERT_TRUE(world_.RunUntil([&] { return world_.Read(name).status.profile.has_value(); }, 200));
    ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Complete", name) != ""; }, 300));
    EXPECT_EQ(world_.Reason("Complete", name), "True/TrainingFinished");
  }
}

TEST_F(StoreSecretsTest, AChangeIsSeenBeforeAnythingIsRefused) {
  world_.options.secrets_seconds = 2;
  world_.RestartController();
  ASSERT_TRUE(RunUntilIteration(10));
  Change("new");
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.store_secrets.credentials.access_key, "new");
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.usage.restarts, 0) << "nobody was disturbed";
}

// A Secret that is gone is missed only by whoever needs it, and holds up no deletion.
TEST_F(StoreSecretsTest, AJobWhoseSecretIsGoneRunsOnAndCanBeDeleted) {
  world_.options.secrets_seconds = 1;
  world_.RestartController();
  ASSERT_TRUE(RunUntilIteration(10));
  ASSERT_TRUE(world_.server.Delete(SecretType(), {"default", "s3"}, "").ok());
  ASSERT_TRUE(RunUntilIteration(60));
  EXPECT_THAT(world_.Reason("Degraded"), Not(HasSubstr("True")));
  world_.Delete();
  EXPECT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 120));
}

TEST(OwnStore, IsReachedAsTheEnvironmentSays) {
  StoreReference reference = OwnStoreReference("s3://models");
  EXPECT_EQ(reference.uri, "s3://models");
  EXPECT_EQ(reference.region, "us-east-1");
  EXPECT_TRUE(reference.path_style);
  EXPECT_TRUE(reference.sign_payload);
  setenv("LAMBDADNN_S3_REGION", "eu-west-1", 1);
  setenv("LAMBDADNN_S3_PATH_STYLE", "false", 1);
  setenv("LAMBDADNN_S3_SIGN_PAYLOAD", "false", 1);
  reference = OwnStoreReference("s3://models");
  EXPECT_EQ(reference.region, "eu-west-1");
  EXPECT_FALSE(reference.path_style);
  EXPECT_FALSE(reference.sign_payload);
  unsetenv("LAMBDADNN_S3_REGION");
  unsetenv("LAMBDADNN_S3_PATH_STYLE");
  unsetenv("LAMBDADNN_S3_SIGN_PAYLOAD");
}

// A job that names no Secret, with the operator's own credentials.
class OwnCredentialsTest : public testing::Test {
 protected:
  OwnCredentialsTest() {
    world_.operator_key = world_.store_key = "old";
    world_.Create(JobWorld::MinimalJob());
  }
  void Rotate() { world_.operator_key = world_.store_key = "new"; }
  bool RunUntilIteration(int64_t iteration) {
    return world_.RunUntil([&] { return world_.Read().status.progress.iteration >= iteration; },
                           60);
  }

  JobWorld world_;
};

TEST_F(OwnCredentialsTest, OthersAreUsedWithoutARestart) {
  ASSERT_TRUE(RunUntilIteration(30));
  Rotate();
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.usage.restarts, 0);
  EXPECT_EQ(world_.Reason("Degraded"), "");
}

TEST_F(OwnCredentialsTest, FunctionsThatHadTheOldOnesGetTheNew) {
  ASSERT_TRUE(RunUntilIteration(30));
  Rotate();
  world_.functions.FailNext("worker-0", UnauthenticatedError("the access key is unknown"), true);
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.usage.restarts, 1);
  EXPECT_EQ(world_.Read().status.model_digest, "digest-100");
}

}  // namespace
}  // namespace lambdadnn
