// SPDX-License-Identifier: Apache-2.0
#include "operator/api/job_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/api/full_job.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

Json MinimalJob() {
  return Json::parse(R"({
    "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
    "metadata": {"name": "digits"},
    "spec": {"model": {"builtin": {"name": "cnn"}},
             "dataset": {"uri": "s3://data/digits", "format": "idx"},
             "training": {"epochs": 3, "globalBatchSize": 120},
             "objective": {"deadlineSeconds": 90}}})");
}

TEST(JobCodec, RoundTripsEveryFieldThroughText) {
  const Job job = FullJob();
  const auto parsed = ParseJson(EncodeJob(job).dump());
  ASSERT_TRUE(parsed.ok());
  const auto decoded = DecodeJob(*parsed);
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(decoded->metadata, job.metadata);
  EXPECT_EQ(decoded->spec, job.spec);
  EXPECT_EQ(decoded->status, job.status);
}

TEST(JobCodec, DefaultsAreFilledIn) {
  const auto job = DecodeJob(MinimalJob());
  ASSERT_TRUE(job.ok()) << job.status().ToString();
  EXPECT_EQ(job->metadata.namespace_name, "default");
  EXPECT_EQ(job->spec.training.epochs, 3);
  EXPECT_EQ(job->spec.training.optimizer, OptimizerSpec{});
  EXPECT_EQ(job->spec.backoff_limit, 6);
  EXPECT_EQ(job->spec.objective.deadline_seconds, 90);
  EXPECT_FALSE(job->spec.objective.fixed);
  EXPECT_EQ(job->status, JobStatus{});
}

TEST(JobCodec, RenderedDigitsAreIdx) {
  Json json = MinimalJob();
  json["spec"]["dataset"] = {{"renderedDigits", {{"train", 600}}}};
  const auto job = DecodeJob(json);
  ASSERT_TRUE(job.ok()) << job.status().ToString();
  EXPECT_EQ(job->spec.dataset.format, "idx");
  EXPECT_EQ(job->spec.dataset.rendered_digits->train, 600);
  EXPECT_EQ(job->spec.dataset.rendered_digits->test, 2000);
}

TEST(JobCodec, AllProblemsAreReportedAtOnceWithTheirPaths) {
  Json json = MinimalJob();
  json["kind"] = "Job";
  json["spec"]["training"]["epochs"] = "three";
  json["spec"]["training"]["optimizer"] = {{"learningRate", 0.1}, {"momentun", "0.9"}};
  json["spec"]["functions"] = {{"memory", {{"min", 128}, {"max", "3008MB"}}}};
  std::vector<FieldError> errors;
  DecodeJob(json, &errors);
  const std::string all = ToStatus(errors).message();
  EXPECT_THAT(all, HasSubstr("kind: must be ServerlessTrainingJob"));
  EXPECT_THAT(all, HasSubstr("spec.training.epochs: must be a whole number"));
  EXPECT_THAT(all, HasSubstr("spec.training.optimizer.learningRate: is a bare number; decimals are "
                             "text here: write \"0.1\""));
  EXPECT_THAT(all, HasSubstr("spec.training.optimizer.momentun: is not a field here; did you mean "
                             "momentum?"));
  EXPECT_THAT(all, HasSubstr("spec.functions.memory.min: must be an amount of memory in quotes"));
  EXPECT_THAT(all, HasSubstr("spec.functions.memory.max: \"3008MB\" is not an amount of memory"));
  EXPECT_EQ(errors.size(), 6u) << all;
}

TEST(JobCodec, AnythingThatIsNoJobIsAnErrorNotACrash) {
  for (const char* text : {"null", "1", "[]", "\"x\"", "{}", R"({"spec": 1})", R"({"spec": null})",
                           R"({"spec": {"model": [], "dataset": 1, "training": "x"}})",
                           R"({"status": [], "metadata": 7})"}) {
    EXPECT_FALSE(DecodeJob(*ParseJson(text)).ok()) << text;
  }
}

TEST(JobCodec, UnknownStatusFieldsAreIgnored) {
  Json json = MinimalJob();
  json["status"] = {{"phase", "Running"}, {"fromTheFuture", 1}, {"progress", {{"laps", 2}}}};
  const auto job = DecodeJob(json);
  ASSERT_TRUE(job.ok()) << job.status().ToString();
  EXPECT_EQ(job->status.phase, "Running");
}

// What the server makes of a patch.
Json Patched(Json object, const Json& patch) {
  object.merge_patch(patch);
  return object;
}

TEST(StatusPatch, FromNothingToFullAndBack) {
  const Json fresh = MinimalJob();
  const JobStatus full = FullJob().status;
  const Json written = Patched(fresh, MakeStatusPatch(fresh, full));
  EXPECT_EQ(DecodeJob(written)->status, full);
  const Json cleared = Patched(written, MakeStatusPatch(written, JobStatus{}));
  EXPECT_EQ(DecodeJob(cleared)->status, JobStatus{});
  EXPECT_FALSE(cleared["status"].contains("plan"));
}

TEST(StatusPatch, IsEmptyWhenNothingChanged) {
  Json object = MinimalJob();
  object = Patched(object, MakeStatusPatch(object, JobStatus{}));
  EXPECT_EQ(MakeStatusPatch(object, JobStatus{}), Json::object());
  const JobStatus full = FullJob().status;
  object = Patched(object, MakeStatusPatch(object, full));
  EXPECT_EQ(MakeStatusPatch(object, full), Json::object());
}

TEST(StatusPatch, HoldsOnlyWhatChangedAndLeavesUnknownFieldsAlone) {
  Json object = MinimalJob();
  JobStatus status = FullJob().status;
  object = Patched(object, MakeStatusPatch(object, status));
  object["status"]["fromTheFuture"] = {{"x", 1}};
  object["status"]["progress"]["laps"] = 2;
  status.progress.iteration = 131;
  status.execution.start_checkpoint.reset();
  const Json patch = MakeStatusPatch(object, status);
  EXPECT_EQ(patch, (Json{{"status",
                          {{"progress", {{"iteration", 131}}},
                           {"execution", {{"startCheckpoint", nullptr}}}}}}));
  const Json after = Patched(object, patch);
  EXPECT_EQ(after["status"]["fromTheFuture"], (Json{{"x", 1}}));
  EXPECT_EQ(after["status"]["progress"]["laps"], 2);
}

TEST(StatusPatch, AStatusThatCannotBeReadIsWrittenAnew) {
  Json object = MinimalJob();
  object["status"] = {{"progress", "nonsense"}, {"conditions", 7}};
  const JobStatus status = FullJob().status;
  const Json after = Patched(object, MakeStatusPatch(object, status));
  EXPECT_EQ(DecodeJob(after)->status, status);
}

}  // namespace
}  // namespace lambdadnn
