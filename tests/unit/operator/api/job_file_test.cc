// SPDX-License-Identifier: Apache-2.0
#include "operator/api/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/files.h"
#include "operator/api/job_codec.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

constexpr const char* kJob = R"(apiVersion: lambdadnn.io/v1alpha1
kind: ServerlessTrainingJob
metadata: {name: digits}
spec:
  model: {builtin: {name: cnn}}
  dataset:
    uri: data/digits/
    format: IDX
  training: {epochs: 3, globalBatchSize: 120}
  objective:
    deadlineSeconds: 90
)";

Result<JobFile> Parse(const std::string& text, std::vector<std::string> overrides = {}) {
  return ParseJobFile(text, "job.yaml", "/jobs", overrides);
}

std::string ErrorOf(const std::string& text, std::vector<std::string> overrides = {}) {
  const auto parsed = Parse(text, std::move(overrides));
  EXPECT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  return parsed.status().message();
}

TEST(JobFile, PathsBecomeUrisRelativeToTheFile) {
  const auto file = Parse(kJob);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(file->job.spec.dataset.uri, "file:///jobs/data/digits");
  EXPECT_EQ(file->object["spec"]["dataset"]["uri"], "file:///jobs/data/digits");
  EXPECT_FALSE(file->object["spec"].contains("backoffLimit")) << "submitted as written";
  EXPECT_EQ(file->job.spec.backoff_limit, 6);
}

TEST(JobFile, OverridesAreTypedByTheSchema) {
  const auto file =
      Parse(kJob, {"spec.training.epochs=5", "spec.training.optimizer.learningRate=0.2",
                   "spec.functions.memory.min=256Mi", "spec.dataset.uri=s3://b/d",
                   "spec.model.builtin.parameters.hidden=[128, 64]", "metadata.labels.run=7",
                   "spec.suspend=true"});
  ASSERT_FALSE(file.ok());  // a label must be text
  EXPECT_THAT(file.status().message(),
              HasSubstr("--set metadata.labels.run=7: metadata.labels.run"));
  const auto good =
      Parse(kJob, {"spec.training.epochs=5", "spec.training.optimizer.learningRate=0.2",
                   "spec.functions.memory.min=256Mi", "spec.dataset.uri=s3://b/d",
                   "spec.model.builtin.parameters.hidden=[128, 64]", "metadata.labels.run=\"7\"",
                   "spec.suspend=true"});
  ASSERT_TRUE(good.ok()) << good.status().ToString();
  EXPECT_EQ(good->job.spec.training.epochs, 5);
  EXPECT_EQ(good->job.spec.training.optimizer.learning_rate, 0.2);
  EXPECT_EQ(good->job.spec.functions.memory_min_mib, 256);
  EXPECT_EQ(good->job.spec.dataset.uri, "s3://b/d");
  EXPECT_EQ(good->job.spec.model.builtin_parameters["hidden"], (Json{128, 64}));
  EXPECT_EQ(good->job.metadata.labels.at("run"), "7");
  EXPECT_TRUE(good->job.spec.suspend);
}

TEST(JobFile, AnEmptyOverrideRemovesAField) {
  const auto file = Parse(kJob, {"spec.objective.deadlineSeconds=", "spec.objective.budget=0.25",
                                 "spec.nothing.there="});
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_FALSE(file->job.spec.objective.deadline_seconds);
  EXPECT_EQ(file->job.spec.objective.budget, 0.25);
}

TEST(JobFile, OverridesThatCannotBeAreNamed) {
  EXPECT_THAT(ErrorOf(kJob, {"spec.training.epochs"}),
              HasSubstr("write it as spec.field.path=value"));
  EXPECT_THAT(ErrorOf(kJob, {"=3"}), HasSubstr("write it as"));
  EXPECT_THAT(ErrorOf(kJob, {"spec.training.epochs=[1"}),
              HasSubstr("--set spec.training.epochs=[1"));
  EXPECT_THAT(ErrorOf(kJob, {"spec.training.epochs.x=1"}), HasSubstr("not a map of fields"));
  EXPECT_THAT(
      ErrorOf(kJob, {"spec.training.epoch=4"}),
      HasSubstr("--set spec.training.epoch=4: spec.training.epoch: is not a field here; did "
                "you mean epochs?"));
  EXPECT_THAT(ErrorOf(kJob, {"spec.training.epochs=0"}), HasSubstr("too small"));
}

TEST(JobFile, OfSeveralDocumentsExactlyOneIsAJob) {
  const std::string secret = "kind: Secret\napiVersion: v1\n";
  EXPECT_TRUE(Parse(secret + "---\n" + kJob).ok());
  EXPECT_TRUE(Parse(std::string("---\n") + kJob + "---\n# nothing\n").ok());
  EXPECT_THAT(ErrorOf(std::string(kJob) + "---\n" + kJob),
              HasSubstr("2 documents, of which 2 are"));
  EXPECT_THAT(ErrorOf(secret + "---\n" + secret), HasSubstr("of which 0 are"));
}

TEST(JobFile, TheServerMayMakeTheName) {
  const auto with = [](const std::string& metadata) {
    const std::string text = R"({"apiVersion": "lambdadnn.io/v1alpha1",
        "kind": "ServerlessTrainingJob", "metadata": )" +
                             metadata + R"(, "spec": {
        "model": {"builtin": {"name": "cnn"}}, "dataset": {"renderedDigits": {}},
        "training": {"epochs": 1, "globalBatchSize": 120}, "objective": {"deadlineSeconds": 90}}})";
    return ParseJobFile(text, "job.json", "/", {}).status().message();
  };
  EXPECT_EQ(with(R"({"generateName": "digits-"})"), "");
  EXPECT_EQ(with(R"({"generateName": ")" + std::string(39, 'a') + "\"}"), "");
  EXPECT_THAT(with(R"({"generateName": ")" + std::string(40, 'a') + "\"}"),
              HasSubstr("metadata.generateName: may have at most 39 characters"));
  EXPECT_THAT(with(R"({"generateName": "Digits-"})"), HasSubstr("metadata.generateName: must"));
  EXPECT_THAT(with(R"({"generateName": "-digits"})"), HasSubstr("metadata.generateName: must"));
  EXPECT_THAT(with(R"({"generateName": ""})"), HasSubstr("metadata.generateName: must"));
  EXPECT_THAT(with(R"({"generateName": 5})"), HasSubstr("metadata.generateName: must be text"));
  EXPECT_THAT(with(R"({})"), HasSubstr("metadata.name: is required"));
  // The name counts, as on a server.
  EXPECT_EQ(with(R"({"name": "digits", "generateName": "Digits-"})"), "");
}

TEST(JobFile, AFileThatIsNotThereAndAFolderAreNamed) {
  const std::string folder = MakeTempDir();
  EXPECT_EQ(LoadJobFile(folder + "/none.yaml").status().code(), StatusCode::kNotFound);
  EXPECT_THAT(LoadJobFile(folder).status().message(), HasSubstr("is a folder"));
}

TEST(JobFile, ManyProblemsAreCutAtTwenty) {
  std::string text = kJob;
  for (int i = 0; i < 30; ++i) text += "  wrong" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(ErrorOf(text), HasSubstr("and 10 problems more"));
}

TEST(JobFile, TheExamplesAreGood) {
  int examples = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SourcePath("examples"))) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string text = *ReadFile(entry.path().string());
    if (text.find("kind: ServerlessTrainingJob") == std::string::npos) continue;
    ++examples;
    const auto file = LoadJobFile(entry.path().string());
    EXPECT_TRUE(file.ok()) << file.status().ToString();
  }
  EXPECT_GE(examples, 2);
}

}  // namespace
}  // namespace lambdadnn
