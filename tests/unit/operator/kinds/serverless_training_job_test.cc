// SPDX-License-Identifier: Apache-2.0
// Jobs on the in-memory API server: the CRD, its rules and the codec together.

#include "operator/kinds/serverless_training_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/files.h"
#include "operator/api/conditions.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_file.h"
#include "operator/kube/in_memory_api_server.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

class JobsOnTheServer : public ::testing::Test {
 protected:
  JobsOnTheServer() : server_(runtime_) {
    server_.Define(JobDefinition());
    server_.Define(EventDefinition());
  }

  static Json Manifest(const std::string& name) {
    const std::string text = *ReadFile(SourcePath("tests/data/good/" + name + ".yaml"));
    return ParseJobFile(text, name, "/jobs").value().object;
  }
  Result<Json> Create(const Json& object) {
    return server_.Create(ServerlessTrainingJobType(), object);
  }
  Result<Json> Patch(const Json& patch, Subresource subresource = Subresource::kNone) {
    return server_.Patch(ServerlessTrainingJobType(), {"default", "digits"}, patch, subresource);
  }

  SystemClock clock_;
  ThreadExecutor executor_;
  SeededRandom random_{1};
  Runtime runtime_{clock_, executor_, random_};
  InMemoryApiServer server_;
};

TEST_F(JobsOnTheServer, EveryGoodManifestIsAcceptedAndDecodesAsFromItsFile) {
  for (const auto& entry : std::filesystem::directory_iterator(SourcePath("tests/data/good"))) {
    const std::string name = entry.path().stem().string();
    Json object = Manifest(name);
    object["metadata"]["name"] = name;
    const auto created = Create(object);
    ASSERT_TRUE(created.ok()) << created.status().ToString();
    EXPECT_EQ(DecodeJob(*created)->spec, DecodeJob(object)->spec) << name;
  }
}

TEST_F(JobsOnTheServer, BadJobsAreRefusedWithPaths) {
  Json object = Manifest("minimal");
  object["spec"]["training"]["epochs"] = 0;
  object["spec"]["objective"]["finishBy"] = "2100-01-31T12:00:00Z";
  object["spec"]["typo"] = 1;
  const Status refused = Create(object).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("spec.training.epochs: 0 is too small"));
  EXPECT_THAT(refused.message(),
              HasSubstr("spec.objective: set deadlineSeconds or finishBy, not both"));
  EXPECT_THAT(refused.message(), HasSubstr("spec.typo: is not a field here"));
}

TEST_F(JobsOnTheServer, OnlyTheLifeOfAJobCanBeChanged) {
  ASSERT_TRUE(Create(Manifest("minimal")).ok());
  EXPECT_TRUE(Patch({{"spec", {{"suspend", true}}}}).ok());
  EXPECT_TRUE(Patch({{"spec", {{"training", {{"epochs", 9}}}}}}).ok());
  EXPECT_THAT(Patch({{"spec", {{"training", {{"seed", 9}}}}}}).status().message(),
              HasSubstr("spec.training.seed: cannot be changed once the job exists"));
}

TEST_F(JobsOnTheServer, StatusWrittenByPatchReadsBackAndLeavesForeignFieldsAlone) {
  Json object = *Create(Manifest("minimal"));
  JobStatus status;
  status.observed_generation = 1;
  status.phase = "Running";
  SetCondition(&status.conditions, {"Accepted", "True", "SpecValid", "", "", 1}, clock_.Wall());
  status.progress.loss = 0.1 + 0.2;
  status.usage.cost = 1.0 / 3;
  object = *Patch(MakeStatusPatch(object, status), Subresource::kStatus);
  EXPECT_EQ(DecodeJob(object)->status, status);
  EXPECT_EQ(MakeStatusPatch(object, status), Json::object());
  status.progress.loss.reset();
  object = *Patch(MakeStatusPatch(object, status), Subresource::kStatus);
  EXPECT_EQ(DecodeJob(object)->status, status);
}

TEST_F(JobsOnTheServer, AWrongStatusIsRefused) {
  ASSERT_TRUE(Create(Manifest("minimal")).ok());
  EXPECT_THAT(Patch({{"status", {{"phase", "Sleeping"}}}}, Subresource::kStatus).status().message(),
              HasSubstr("status.phase"));
  EXPECT_THAT(Patch({{"status", {{"phas", "Running"}}}}, Subresource::kStatus).status().message(),
              HasSubstr("did you mean phase?"));
}

TEST_F(JobsOnTheServer, AReconcileWorthOfCallsTakesWellUnderAMillisecond) {
  Json object = *Create(Manifest("pod-template"));
  JobStatus status;
  constexpr int kRounds = 1000;
  const Instant start = clock_.Now();
  for (int i = 1; i <= kRounds; ++i) {
    const Job job = DecodeJob(object).value();
    status = job.status;
    status.progress.iteration = i;
    object = *Patch(MakeStatusPatch(object, status), Subresource::kStatus);
  }
  const double microseconds = ToSeconds(clock_.Now() - start) / kRounds * 1e6;
  std::printf("read, decide, write: %.0f us\n", microseconds);
  EXPECT_LT(microseconds, 5000);  // a bound for a very busy machine
}

}  // namespace
}  // namespace lambdadnn
