// SPDX-License-Identifier: Apache-2.0
// Who may name what: the operator's rights end at a job's own place and the listed folders.
#include "operator/controller/admission/tenant_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/base64.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/resources/slice_requests.h"
#include "tests/support/job_world.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TenantRules Rules() {
  TenantRules rules;
  rules.uri = "s3://training/runs";
  rules.endpoint = "https://minio:9000";
  rules.readable = {"s3://data/public", "s3://training/runs/lambdadnn/{namespace}"};
  return rules;
}

Job JobOf(const std::string& name_space = "team-a") {
  Job job;
  job.metadata.name = "j";
  job.metadata.namespace_name = name_space;
  job.metadata.uid = "u-1";
  job.spec.dataset.uri = "s3://data/public/digits";
  return job;
}

std::string Refusal(Job job, const TenantRules& rules = Rules()) {
  UseOperatorStore(rules, &job);
  const Status reach = CheckReach(rules, job);
  EXPECT_TRUE(reach.ok() || reach.code() == StatusCode::kPermissionDenied);
  return reach.message();
}

TEST(TenantRules, AJobThatNamesNoStoreGetsItsPlaceInTheOperators) {
  Job job = JobOf();
  EXPECT_EQ(Refusal(job), "");
  UseOperatorStore(Rules(), &job);
  EXPECT_EQ(MakeStoreReference(job).uri, "s3://training/runs");
  EXPECT_EQ(MakeStoreReference(job).endpoint, "https://minio:9000");
  EXPECT_EQ(JobPrefix(job), "lambdadnn/team-a/j-u1");
}

TEST(TenantRules, AnOperatorWithoutAStoreNeedsJobsThatBringOne) {
  TenantRules rules = Rules();
  rules.uri.clear();
  Job job = JobOf();
  EXPECT_THAT(Refusal(job, rules), AllOf(HasSubstr("spec.objectStore"), HasSubstr("--store")));
  job.spec.object_store.bucket = "mine";
  EXPECT_THAT(Refusal(job, rules), HasSubstr("credentialsSecretRef"));
  job.spec.object_store.credentials_secret = "s3";
  EXPECT_EQ(Refusal(job, rules), "");
}

// The same place in other words is the same place.
TEST(TenantRules, TheOperatorsStoreMayBeNamed) {
  Job job = JobOf();
  job.spec.object_store.uri = "s3://training/runs/";
  EXPECT_EQ(Refusal(job), "");
  job.spec.object_store.uri.clear();
  job.spec.object_store.bucket = "training";
  job.spec.object_store.prefix = "runs/lambdadnn";
  EXPECT_EQ(Refusal(job), "");
  job.spec.object_store.endpoint = "https://minio:9000/";
  EXPECT_EQ(Refusal(job), "");
}

// Whatever Secret the job has: the operator would ask them from inside the cluster.
TEST(TenantRules, AnEndpointThatIsNoStoreIsRefused) {
  TenantRules rules = Rules();
  Job job = JobOf();
  job.spec.object_store.bucket = "mine";
  job.spec.object_store.credentials_secret = "s3";
  job.spec.object_store.endpoint = "http://169.254.169.254";
  EXPECT_THAT(Refusal(job, rules),
              AllOf(StartsWith("spec.objectStore.endpoint: "), HasSubstr("metadata")));
  job.spec.object_store.endpoint = "http://127.0.0.1:8080";
  EXPECT_EQ(Refusal(job, rules), "");
  rules.endpoints.refuse_loopback = true;
  EXPECT_THAT(Refusal(job, rules), HasSubstr("the operator's own pod"));
  // What the administrator has chosen is none of the jobs' doing.
  rules.endpoint = "http://127.0.0.1:8080/";
  EXPECT_EQ(Refusal(job, rules), "");
}

// A Secret opens no door that the administrator's list keeps shut.
TEST(TenantRules, AnEndpointThatIsNotListedIsRefused) {
  TenantRules rules = Rules();
  rules.endpoints.listed = StoreEndpoints{.own = rules.endpoint};
  Job job = JobOf();
  EXPECT_EQ(Refusal(job, rules), "");  // in the operator's store
  job.spec.object_store.bucket = "mine";
  job.spec.object_store.credentials_secret = "s3";
  EXPECT_EQ(Refusal(job, rules), "");
  job.spec.object_store.endpoint = "https://minio:9000/";
  EXPECT_EQ(Refusal(job, rules), "");
  job.spec.object_store.endpoint = "https://user.example:9000";
  EXPECT_THAT(Refusal(job, rules), AllOf(StartsWith("spec.objectStore.endpoint: "),
                                         HasSubstr("objectStore.allowedEndpoints")));
  rules.endpoints.listed->allowed.push_back({.host = "user.example"});
  EXPECT_EQ(Refusal(job, rules), "");
}

TEST(TenantRules, AnotherEndpointBucketOrPrefixNeedsASecret) {
  for (const auto& [bucket, prefix, endpoint] :
       std::vector<std::array<std::string, 3>>{{"training", "runs/lambdadnn", "https://evil:9000"},
                                               {"other", "runs/lambdadnn", ""},
                                               {"training", "", ""},
                                               {"training", "runs", ""},
                                               {"training", "runs/lambdadnn2", ""},
                                               {"training", "runs/lambdadnn/team-b", ""},
                                               {"training", "runs/lambdadnn/team-a", ""},
                                               {"training", "runs/x/../lambdadnn", ""},
                                               {"training", "runs/lambdadnn/%2e%2e", ""}}) {
    Job job = JobOf();
    job.spec.object_store.bucket = bucket;
    job.spec.object_store.prefix = prefix;
    job.spec.object_store.endpoint = endpoint;
    const std::string refusal = Refusal(job);
    EXPECT_THAT(refusal, StartsWith("spec.objectStore: ")) << bucket << "/" << prefix << endpoint;
    job.spec.object_store.credentials_secret = "s3";
    EXPECT_EQ(Refusal(job), "") << "the store says what a Secret may";
  }
  Job prefix_alone = JobOf();
  prefix_alone.spec.object_store.prefix = "lambdadnn/team-b";
  EXPECT_THAT(Refusal(prefix_alone), HasSubstr("spec.objectStore"));
}

TEST(TenantRules, DataModelAndCheckpointMustBeListedOrBelongToTheSecret) {
  const std::string foreign = "s3://training/runs/lambdadnn/team-b/u-2";
  std::vector<std::pair<std::string, std::function<void(Job&, const std::string&)>>> fields = {
      {"spec.dataset.uri", [](Job& job, const std::string& uri) { job.spec.dataset.uri = uri; }},
      {"spec.dataset.testUri",
       [](Job& job, const std::string& uri) { job.spec.dataset.test_uri = uri; }},
      {"spec.model.torchScript.uri",
       [](Job& job, const std::string& uri) { job.spec.model.torch_script_uri = uri; }},
      {"spec.checkpoint.resumeFrom",
       [](Job& job, const std::string& uri) { job.spec.checkpoint.resume_from = uri; }}};
  for (const auto& [field, set] : fields) {
    Job job = JobOf();
    set(job, foreign);
    EXPECT_THAT(Refusal(job), AllOf(StartsWith(field + ": "), HasSubstr("credentialsSecretRef"),
                                    HasSubstr("--readable")));
    job.spec.object_store.credentials_secret = "s3";
    EXPECT_EQ(Refusal(job), "") << field;
    job = JobOf();
    set(job, "s3://training/runs/lambdadnn/team-a/u-0");  // an earlier job of the same namespace
    EXPECT_EQ(Refusal(job), "") << field;
  }
}

TEST(TenantRules, PathsAreComparedByWholePartsAndNeverMadeSenseOf) {
  for (const char* uri : {"s3://data/public2/digits",
                          "s3://data",
                          "s3://data/",
                          "s3://data/publi",
                          "s3://Data/public",
                          "s3://data/public/../private",
                          "s3://data/public/..",
                          "s3://data/./public/x",
                          "s3://data//public/x",
                          "s3://data/public//x",
                          "s3://data/public/%2E%2e/private",
                          "s3://data/public%2fx",
                          "s3://data/public/%2F..%2Fprivate",
                          "s3://data/public/a\\..\\b",
                          "s3://data/public/a%5C..",
                          "s3:///data/public",
                          "file://data/public",
                          "http://data/public",
                          "/data/public",
                          "s3:/data/public",
                          "",
                          "file:///data/public",
                          "memory://data/public"}) {
    Job job = JobOf();
    job.spec.dataset.uri.clear();
    job.spec.checkpoint.resume_from = uri;
    if (std::string(uri).empty()) continue;
    EXPECT_THAT(Refusal(job), StartsWith("spec.checkpoint.resumeFrom: ")) << uri;
  }
  for (const char* uri : {"s3://data/public", "s3://data/public/", "s3://data/public/a%20b/c..d"}) {
    Job job = JobOf();
    job.spec.dataset.uri = uri;
    EXPECT_EQ(Refusal(job), "") << uri;
  }
}

TEST(TenantRules, ATestSetsRelativeNameLeavesItsFolderNeither) {
  Job job = JobOf();
  job.spec.dataset.test_uri = "t10k";
  EXPECT_EQ(Refusal(job), "");
  job.spec.dataset.test_uri = "../../private";
  EXPECT_THAT(Refusal(job), StartsWith("spec.dataset.testUri: "));
  // Beside a file is in the folder above it.
  TenantRules rules = Rules();
  rules.readable = {"s3://data/one.csv"};
  job.spec.dataset.uri = "s3://data/one.csv";
  job.spec.dataset.test_uri = "two.csv";
  EXPECT_THAT(Refusal(job, rules), StartsWith("spec.dataset.testUri: "));
}

TEST(TenantRules, FilesNeedToBeListedWhateverSecretThereIs) {
  Job job = JobOf();
  job.spec.object_store.credentials_secret = "s3";
  job.spec.dataset.uri = "file:///etc";
  EXPECT_THAT(Refusal(job), AllOf(StartsWith("spec.dataset.uri: "), HasSubstr("--readable"),
                                  Not(HasSubstr("credentialsSecretRef"))));
  job = JobOf();
  job.spec.object_store.credentials_secret = "s3";
  job.spec.object_store.uri = "file:///etc";
  EXPECT_THAT(Refusal(job), StartsWith("spec.objectStore.uri: "));
}

TEST(TenantRules, LinksOutOfAListedFolderAreRefused) {
  const std::string folder = MakeTempDir();
  std::filesystem::create_directories(folder + "/public/digits");
  std::filesystem::create_directories(folder + "/private");
  std::filesystem::create_directory_symlink(folder + "/private", folder + "/public/out");
  std::filesystem::create_directory_symlink(folder + "/public/digits", folder + "/public/in");
  std::filesystem::create_directory_symlink(folder + "/public", folder + "/alias");
  TenantRules rules = Rules();
  rules.readable = {"file://" + folder + "/public", "file://" + folder + "/alias"};
  const auto refusal = [&](const std::string& path) {
    Job job = JobOf();
    job.spec.dataset.uri = "file://" + folder + path;
    return Refusal(job, rules);
  };
  EXPECT_EQ(refusal("/public/digits"), "");
  EXPECT_EQ(refusal("/public/in"), "");
  EXPECT_EQ(refusal("/alias/digits"), "") << "a listed folder may itself be a link";
  EXPECT_EQ(refusal("/public/not-there-yet"), "");
  EXPECT_THAT(refusal("/public/out"), StartsWith("spec.dataset.uri: "));
  EXPECT_THAT(refusal("/public/out/deeper"), StartsWith("spec.dataset.uri: "));
  EXPECT_THAT(refusal("/public/../private"), StartsWith("spec.dataset.uri: "));
  EXPECT_THAT(refusal("/private"), StartsWith("spec.dataset.uri: "));
}

TEST(CheckPlace, SaysWhatAnAdministratorWroteWrong) {
  EXPECT_TRUE(CheckPlace("s3://data/{namespace}/x").ok());
  EXPECT_TRUE(CheckPlace("file:///data").ok());
  for (const char* bad :
       {"", "data", "s3://", "file://", "file:///", "file://data", "s3://b/../c", "http://x/y"}) {
    EXPECT_EQ(CheckPlace(bad).code(), StatusCode::kInvalidArgument) << bad;
  }
}

// --- Whole jobs ---

class TenantJobTest : public testing::Test {
 protected:
  TenantJobTest() {
    world_.options.tenants.emplace();
    world_.options.tenants->uri = "file:///store";
    world_.options.tenants->readable = {"file:///data"};
    world_.RestartController();
  }
  std::string FailureOf(const Json& job) {
    world_.Create(job);
    EXPECT_TRUE(world_.RunUntilFinished(60));
    EXPECT_EQ(world_.Reason("Failed"), "True/StoreNotAllowed");
    EXPECT_THAT(world_.functions.Live(), IsEmpty());
    EXPECT_THAT(world_.functions.started(), IsEmpty());
    EXPECT_THAT(world_.opened, IsEmpty()) << "nothing is reached for a job that is refused";
    const Job ended = world_.Read();
    return FindCondition(ended, "Failed")->message;
  }

  JobWorld world_;
};

TEST_F(TenantJobTest, AJobWithoutAStoreRunsInTheOperators) {
  Json job = JobWorld::MinimalJob();
  job["spec"].erase("objectStore");
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_THAT(world_.Read().status.model_uri, StartsWith("file:///store/lambdadnn/default/"));
  EXPECT_THAT(world_.opened, Each("file:///store"));
  EXPECT_FALSE(world_.server.Get(ServerlessTrainingJobType(), {"default", "digits"})
                   ->at("spec")
                   .value("objectStore", Json::object())
                   .contains("uri"))
      << "the spec is the user's";
}

TEST_F(TenantJobTest, ARefusedJobSaysWhyAndIsDeletedWithoutTouchingAnyStore) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["objectStore"] = {{"uri", "file:///store/lambdadnn/other-namespace"}};
  EXPECT_THAT(FailureOf(job), StartsWith("spec.objectStore.uri: "));
  world_.Delete();
  EXPECT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 20));
  EXPECT_THAT(world_.opened, IsEmpty());
}

TEST_F(TenantJobTest, DataOfAnotherNamespaceIsRefused) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["dataset"]["uri"] = "file:///store/lambdadnn/other-namespace/u-2";
  EXPECT_THAT(FailureOf(job), StartsWith("spec.dataset.uri: "));
}

TEST_F(TenantJobTest, ACheckpointOfAnotherNamespaceIsRefused) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["checkpoint"]["resumeFrom"] = "file:///store/lambdadnn/other-namespace/u-2";
  EXPECT_THAT(FailureOf(job), StartsWith("spec.checkpoint.resumeFrom: "));
}

// Functions read data and models where their user's store is, and as their user.
TEST_F(TenantJobTest, ASecretGoesWithItsOwnEndpoint) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["dataset"]["uri"] = "s3://users/data";
  job["spec"]["objectStore"] = {{"endpoint", "https://user.example:9000"},
                                {"bucket", "users"},
                                {"region", "eu-1"},
                                {"credentialsSecretRef", {{"name", "s3"}}}};
  Json secret = {
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata", {{"name", "s3"}, {"namespace", "default"}}},
      {"data", {{"accessKeyId", EncodeBase64("a")}, {"secretAccessKey", EncodeBase64("s")}}}};
  ASSERT_TRUE(world_.server.Create(SecretType(), secret).ok());
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.functions.Live().empty(); }, 60));
  const auto& environment = world_.functions.EnvironmentOf(*world_.functions.Live().begin());
  EXPECT_EQ(environment.at("LAMBDADNN_S3_ENDPOINT"), "https://user.example:9000");
  EXPECT_EQ(environment.at("LAMBDADNN_S3_REGION"), "eu-1");
  EXPECT_EQ(environment.at("LAMBDADNN_S3_ACCESS_KEY_ID"), "a");
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(TenantJobTest, AStoreThatIsNotListedIsNeverAsked) {
  world_.options.tenants->endpoints.listed = StoreEndpoints{};
  world_.RestartController();
  Json job = JobWorld::MinimalJob();
  job["spec"]["objectStore"] = {{"endpoint", "https://user.example:9000"},
                                {"bucket", "users"},
                                {"credentialsSecretRef", {{"name", "s3"}}}};
  EXPECT_THAT(FailureOf(job),
              AllOf(StartsWith("spec.objectStore.endpoint: https://user.example:9000 is not the "
                               "operator's own object store"),
                    HasSubstr("objectStore.allowedEndpoints")));
}

// The list is the administrator's: what it no longer holds is out of reach at once.
TEST_F(TenantJobTest, AListThatWasNarrowedEndsTheJobsBeyondIt) {
  Json job = JobWorld::MinimalJob();
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.iteration > 5; }, 60));
  world_.options.tenants->readable.clear();
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Failed"), "True/StoreNotAllowed");
  EXPECT_EQ(world_.Reason("Degraded"), "True/CleanupIncomplete");
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
}

}  // namespace
}  // namespace lambdadnn
