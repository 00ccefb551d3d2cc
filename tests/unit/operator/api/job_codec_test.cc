// SPDX-License-Identifier: Apache-2.0
#include "operator/api/job_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/status_codec.h"
#include "tests/unit/operator/api/full_job.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

Json MinimalJob() {
  return Json::parse(R"({
    "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
    "metadata": {"name": "digits"},
    "spec": {"model": {"builtin": {"name": "cnn"}},
             "dataset": {"uri": "s3://data/digits", "format": "IDX"},
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
  EXPECT_EQ(job->spec.dataset.format, DatasetFormat::kIdx);
  EXPECT_EQ(job->spec.dataset.rendered_digits->train, 600);
  EXPECT_EQ(job->spec.dataset.rendered_digits->test, 2000);
}

TEST(JobCodec, ValuesOfANewerVersionAreRefusedWithThoseThatAreKnown) {
  const auto message = [](const char* pointer, const char* value) {
    Json json = MinimalJob();
    json["spec"][Json::json_pointer(pointer)] = value;
    return DecodeJob(json).status().message();
  };
  EXPECT_EQ(message("/training/loss", "mse"),
            "spec.training.loss: \"mse\" is not known here; did you mean MSE? There are "
            "CrossEntropy, MSE, BCEWithLogits");
  EXPECT_EQ(message("/backend", "OpenWhisk"),
            "spec.backend: \"OpenWhisk\" is not known here; there are Local, Knative, OpenFaaS");
  EXPECT_EQ(message("/cleanupPolicy", "Later"),
            "spec.cleanupPolicy: \"Later\" is not known here; there are Always, OnSuccess, Never");
  EXPECT_EQ(message("/training/synchronization/mode", "SSP"),
            "spec.training.synchronization.mode: \"SSP\" is not known here; only BSP is");
  EXPECT_THAT(message("/training/optimizer/learningRateScaling", "Cubic"), HasSubstr("SquareRoot"));
  EXPECT_THAT(message("/aggregation/transport", "Pigeon"), HasSubstr("ObjectStore"));
  EXPECT_THAT(message("/aggregation/placement", "Nowhere"), HasSubstr("Dedicated"));
}

TEST(JobCodec, AutoIsTheSameAsLeavingItAway) {
  Json json = MinimalJob();
  json["spec"]["aggregation"] = {{"transport", "Auto"}, {"placement", "Auto"}};
  EXPECT_EQ(DecodeJob(json).value().spec, DecodeJob(MinimalJob()).value().spec);
  json["spec"]["aggregation"] = {{"transport", "ObjectStore"}, {"placement", "Dedicated"}};
  const AggregationSpec aggregation = DecodeJob(json).value().spec.aggregation;
  EXPECT_EQ(aggregation.transport, TransportKind::kObjectStore);
  EXPECT_EQ(aggregation.placement, Placement::kDedicated);
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

TEST(StatusPatch, ItemsOfListsKeepWhatIsNotKnownOfThem) {
  Json object = MinimalJob();
  JobStatus status = FullJob().status;
  status.profile->training_rate.table = {{512, 100}, {1024, 190}};
  object = Patched(object, MakeStatusPatch(object, status));
  for (Json& condition : object["status"]["conditions"]) condition["severity"] = "low";
  for (Json& record : object["status"]["planHistory"]) record["mood"] = {{"x", 1}};
  for (Json& point : object["status"]["profile"]["trainingRate"]["table"]) point["cores"] = 2;
  EXPECT_EQ(MakeStatusPatch(object, status), Json::object()) << "nothing of ours has changed";
  status.conditions.front().message = "It still is.";
  status.conditions.push_back({"Degraded", "True", "SliceFailed", "", "2026-01-31T12:00:09Z", 2});
  status.plan_history.erase(status.plan_history.begin());
  status.profile->training_rate.table.back().samples_per_second = 191;
  const Json after = Patched(object, MakeStatusPatch(object, status))["status"];
  EXPECT_EQ(after["conditions"][0]["message"], "It still is.");
  EXPECT_EQ(after["conditions"][0]["severity"], "low");
  EXPECT_EQ(after["conditions"][1]["severity"], "low");
  EXPECT_FALSE(after["conditions"][2].contains("severity"));
  ASSERT_EQ(after["planHistory"].size(), 1u);
  EXPECT_EQ(after["planHistory"][0]["mood"], (Json{{"x", 1}}));
  EXPECT_EQ(after["profile"]["trainingRate"]["table"][1]["samplesPerSecond"], "191");
  EXPECT_EQ(after["profile"]["trainingRate"]["table"][1]["cores"], 2);
}

TEST(StatusPatch, FieldsOfPlanProfileAndSummaryThatAreNotKnownStay) {
  Json object = MinimalJob();
  JobStatus status = FullJob().status;
  object = Patched(object, MakeStatusPatch(object, status));
  Json& written = object["status"];
  for (const char* path :
       {"/plan", "/plan/aggregation", "/plan/predicted", "/profile", "/profile/trainingRate",
        "/execution/plannedFor/aggregation", "/usage", "/summary"}) {
    written.at(Json::json_pointer(path))["fromTheFuture"] = path;
  }
  EXPECT_EQ(DecodeJob(object)->status, status);
  status.plan->memory_mib += 64;
  status.plan->predicted.seconds += 1;
  status.profile->training_rate.slope += 1;
  status.execution.planned_for->objective = {};
  status.execution.planned_for->objective.budget = 0.5;
  status.usage.cost += 1;
  const Json after = Patched(object, MakeStatusPatch(object, status));
  for (const char* path :
       {"/plan", "/plan/aggregation", "/plan/predicted", "/profile", "/profile/trainingRate",
        "/execution/plannedFor/aggregation", "/usage", "/summary"}) {
    EXPECT_EQ(after["status"].at(Json::json_pointer(path))["fromTheFuture"], path);
  }
  EXPECT_EQ(DecodeJob(after)->status, status);
}

TEST(StatusPatch, ASignatureInPlannedForIsTakenAway) {
  Json object = MinimalJob();
  JobStatus status = FullJob().status;
  object = Patched(object, MakeStatusPatch(object, status));
  object["status"]["execution"]["plannedFor"] = "00ff";
  const auto job = DecodeJob(object);
  ASSERT_TRUE(job.ok()) << job.status().ToString();
  EXPECT_EQ(job->status.execution.planned_for, std::nullopt);
  EXPECT_EQ(MakeStatusPatch(object, job->status),
            (Json{{"status", {{"execution", {{"plannedFor", nullptr}}}}}}));
}

TEST(StatusPatch, TextsInFunctionsAreTakenAway) {
  Json object = MinimalJob();
  JobStatus status = FullJob().status;
  status.execution.functions.clear();
  object = Patched(object, MakeStatusPatch(object, status));
  object["status"]["execution"]["functions"] = {"worker-0=a"};
  EXPECT_EQ(MakeStatusPatch(object, status),
            (Json{{"status", {{"execution", {{"functions", Json::array()}}}}}}));
}

TEST(SortProblems, TellsTheUsersFromWhatStatusRemembers) {
  const JobProblems problems = SortProblems({{"spec.training", "a"},
                                             {"statusless", "b"},
                                             {"status", "c"},
                                             {"status.planHistory[3].revision", "d"},
                                             {"status.plan.predicted.cost", "e"},
                                             {"status.conditions[0].type", "f"},
                                             {"status.usage.cost", "g"},
                                             {"status.phase", "h"}});
  const auto messages = [](const std::vector<FieldError>& errors) {
    std::string all;
    for (const FieldError& error : errors) all += error.message;
    return all;
  };
  EXPECT_EQ(messages(problems.spec), "ab");
  EXPECT_EQ(messages(problems.remembered), "cdef");
  EXPECT_EQ(messages(problems.passed_over), "gh");
}

TEST(StatusPatch, AStatusThatCannotBeReadIsWrittenAnew) {
  Json object = MinimalJob();
  object["status"] = {{"progress", "nonsense"}, {"conditions", 7}};
  const JobStatus status = FullJob().status;
  const Json after = Patched(object, MakeStatusPatch(object, status));
  EXPECT_EQ(DecodeJob(after)->status, status);
}

TEST(PodTemplate, EachFieldOfAWrongShapeIsReportedAtItsPath) {
  const std::pair<const char*, const char*> kRows[] = {
      {"7", "spec.podTemplate"},
      {R"({"metadata": {"labels": []}})", "spec.podTemplate.metadata.labels"},
      {R"({"metadata": {"annotations": {"a": 1}}})", "spec.podTemplate.metadata.annotations.a"},
      {R"({"metadata": {"name": "a"}})", "spec.podTemplate.metadata.name"},
      {R"({"spec": {"nodeSelector": 7}})", "spec.podTemplate.spec.nodeSelector"},
      {R"({"spec": {"imagePullSecrets": [{}]}})", "spec.podTemplate.spec.imagePullSecrets[0].name"},
      {R"({"spec": {"tolerations": {}}})", "spec.podTemplate.spec.tolerations"},
      {R"({"spec": {"affinity": []}})", "spec.podTemplate.spec.affinity"},
      {R"({"spec": {"runtimeClassName": 7}})", "spec.podTemplate.spec.runtimeClassName"},
      {R"({"spec": {"volumes": 7}})", "spec.podTemplate.spec.volumes"},
      {R"({"spec": {"containers": [7]}})", "spec.podTemplate.spec.containers[0]"},
      {R"({"spec": {"containers": [{"name": "worker", "env": {}}]}})",
       "spec.podTemplate.spec.containers[0].env"},
      {R"({"spec": {"containers": [{"name": "worker", "resources": []}]}})",
       "spec.podTemplate.spec.containers[0].resources"},
  };
  for (const auto& [json, path] : kRows) {
    std::vector<FieldError> errors;
    (void)DecodePodTemplate(Json::parse(json), "spec.podTemplate", &errors);
    ASSERT_FALSE(errors.empty()) << json;
    EXPECT_EQ(errors[0].path, path) << json;
  }
}

TEST(PodTemplate, OfAContainerThatIsNotNamedAllIsEmpty) {
  PodTemplate pods;
  pods.containers = {{.name = "worker", .image = "w:1"}};
  EXPECT_EQ(ContainerOf(pods, "worker").image, "w:1");
  EXPECT_EQ(ContainerOf(pods, "server"), ContainerTemplate());
  EXPECT_EQ(ContainerOf({}, "worker"), ContainerTemplate());
}

}  // namespace
}  // namespace lambdadnn
