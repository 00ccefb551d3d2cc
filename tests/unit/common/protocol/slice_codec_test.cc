// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/slice_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <limits>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

SliceRequest ExampleRequest() {
  SliceRequest request;
  request.job = {"uid-1", "team", "digits"};
  request.leader_epoch = 5;
  request.incarnation = 2;
  request.roles.front().role = {RoleKind::kServer, 3, {2, 0, 1}};
  request.plan.revision = 1;
  request.plan.functions = 2;
  request.plan.local_batch_size = 16;
  request.plan.global_batch_size = 32;
  request.plan.iterations = 100;
  request.plan.aggregation.shards = 2;
  request.plan.aggregation.layers = {1, 1, 2};
  request.plan.aggregation.spread = 2;
  request.plan.libtorch = "1.13.1, built in";
  request.training.model.name = "mlp";
  request.training.model.parameters["hidden"] = {128, 64};
  request.training.model.torch_script_uri = "s3://bucket/net.pt";
  request.training.model.module = {"sha256:01", true};
  request.training.dataset.uri = "file:///data";
  request.training.dataset.format = DatasetFormat::kIdx;
  request.training.dataset.feature_shape = {1, 28, 28};
  request.training.optimizer.name = OptimizerKind::kAdam;
  request.training.optimizer.learning_rate = 0.1;
  request.training.optimizer.clip_global_norm = 1.5;
  request.training.seed = std::numeric_limits<uint64_t>::max();
  request.training.training_samples = 3200;
  request.training.stop_at_loss = 0.05;
  request.training.label_smoothing = 0.1;
  request.training.evaluate_every = 2;
  request.training.early_stopping = {TestMetric::kAccuracy, 4, 0.001};
  request.training.keep_best = TestMetric::kLoss;
  request.training.class_weights = {1, 0.25};
  request.training.micro_batch_size = 8;
  request.training.precision = Precision::kBfloat16;
  request.training.optimizer.schedule.power = 2;
  request.store = {"file:///store", "", "us-east-1", true, true, "root/team/uid-1"};
  request.first_iteration = 40;
  request.start = CheckpointReference{"root/team/uid-1", 40, 1, 1};
  request.budget_seconds = 600;
  request.checkpoint_keep = 3;
  request.invocation = MakeInvocationId(request);
  return request;
}

SliceRecord ExampleRecord() {
  SliceRecord record;
  record.invocation = "uid-1.r1.i2.worker-0.f40.a1";
  record.outcome = SliceOutcome::kFinished;
  record.next_iteration = 100;
  record.state_digest = "0123456789abcdef";
  record.checkpoint = CheckpointReference{"root/team/uid-1", 100, 1, 2};
  record.cpu_seconds = 1.25;
  record.wall_seconds = 2.5;
  record.max_rss_bytes = 1 << 20;
  record.phases[Phase::kCompute] = {1.5, 1.25, 0.25, 0};
  record.phases[Phase::kPull] = {0.5, 0.125, 0, 3};
  record.latencies[RequestKind::kPut].Add(0.003);
  record.latencies[RequestKind::kMiss].Add(5);
  record.store.puts = 7;
  record.store.misses = 3;
  record.evaluations = {{0, 1.5, 9, 10, {}, {}, {}}, {1, 0.5, 10, 10, {}, {}, {}}};
  record.metrics["parameters"] = 1000;
  record.profile_iteration_seconds = {0.5, 0.25};
  record.profile_evaluation_samples_per_second = 1000;
  return record;
}

std::string Golden(const std::string& name) {
  return std::string(Trim(ReadFile(SourcePath("tests/data/formats/" + name)).value()));
}

SliceRecord DecodedRecord(std::string_view line) {
  return std::get<SliceRecord>(**DecodeSliceLine(line));
}

TEST(Slice, NamesAndInvocationIds) {
  EXPECT_EQ((Role{RoleKind::kWorker, 3, {}}).Name(), "worker-3");
  EXPECT_EQ((Role{RoleKind::kProfile, 0, {}}).Name(), "profile-0");
  SliceRequest request = ExampleRequest();
  request.roles.front().attempt = 4;
  EXPECT_EQ(MakeInvocationId(request), "uid-1.r1.i2.server-3.f40.a4");
}

TEST(SliceCodec, RequestIsTheGoldenFileAndRoundTrips) {
  const std::string text = EncodeSliceRequest(ExampleRequest());
  EXPECT_EQ(text, Golden("slice_request.json"));
  const SliceRequest decoded = DecodeSliceRequest(text).value();
  EXPECT_EQ(EncodeSliceRequest(decoded), text);
  EXPECT_EQ(decoded.training.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(decoded.roles, ExampleRequest().roles);
  EXPECT_EQ(decoded.peers, ExampleRequest().peers);
  EXPECT_EQ(decoded.plan, ExampleRequest().plan);
  EXPECT_EQ(decoded.start, ExampleRequest().start);
}

TEST(SliceCodec, CredentialsGoAlong) {
  SliceRequest request = ExampleRequest();
  request.credentials = StoreCredentials{"key", "secret", "token"};
  const auto decoded = DecodeSliceRequest(EncodeSliceRequest(request));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(decoded->credentials, request.credentials);
  Json json = *ParseJson(EncodeSliceRequest(request));
  json["credentials"].erase("secretAccessKey");
  // What is missing is named, what is there is not quoted.
  const std::string message = DecodeSliceRequest(json.dump()).status().message();
  EXPECT_THAT(message, HasSubstr("credentials.secretAccessKey"));
  EXPECT_EQ(message.find("token"), std::string::npos) << message;
}

TEST(SliceCodec, WhatANewerRequestAddsIsLeftOutWhenItSaysSo) {
  SliceRequest request = ExampleRequest();
  request.protocol = kProtocolVersion + 1;
  request.minimum_protocol = kProtocolVersion;
  Json json = *ParseJson(EncodeSliceRequest(request));
  json["colour"] = "red";
  json["training"]["optimizer"]["flavour"] = {{"of", "something"}};
  const auto decoded = DecodeSliceRequest(json.dump());
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(decoded->training.seed, request.training.seed);
  // A field that is known must still be right.
  json["leaderEpoch"] = "late";
  EXPECT_FALSE(DecodeSliceRequest(json.dump()).ok());
}

TEST(SliceCodec, WhatANewerRequestNeedsIsNotLeftOut) {
  SliceRequest request = ExampleRequest();
  request.protocol = request.minimum_protocol = kProtocolVersion + 1;
  Json json = *ParseJson(EncodeSliceRequest(request));
  json["training"]["flavour"] = 1;
  EXPECT_THAT(DecodeSliceRequest(json.dump()).status().message(), HasSubstr("training.flavour"));
  json = *ParseJson(EncodeSliceRequest(ExampleRequest()));
  json["training"]["flavour"] = 1;
  EXPECT_FALSE(DecodeSliceRequest(json.dump()).ok());
}

TEST(SliceCodec, AFunctionTakesOnOneRoleAtLeast) {
  SliceRequest both = ExampleRequest();
  both.roles = {{{RoleKind::kWorker, 2, {}}, 3}, {{RoleKind::kServer, 1, {1, 1, 0}}, 3}};
  EXPECT_EQ(DecodeSliceRequest(EncodeSliceRequest(both))->roles, both.roles);
  Json json = *ParseJson(EncodeSliceRequest(ExampleRequest()));
  json["roles"] = Json::array();
  EXPECT_EQ(DecodeSliceRequest(json.dump()).status().message(),
            "roles: is empty; a function takes on one at least");
  json["roles"] = {{"kind", "worker"}};
  EXPECT_THAT(DecodeSliceRequest(json.dump()).status().message(), HasSubstr("must be a list"));
}

TEST(SliceCodec, PeersAndAttemptsComeThrough) {
  SliceRequest request = ExampleRequest();
  request.roles.front().attempt = 3;
  request.peers = {{{RoleKind::kWorker, 1, {}}, "10.0.0.7:8080"},
                   {{RoleKind::kServer, 0, {1, 0, 0}}, "[::1]:80"}};
  const auto decoded = DecodeSliceRequest(EncodeSliceRequest(request));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(decoded->roles, request.roles);
  EXPECT_EQ(decoded->peers, request.peers);
}

TEST(SliceCodec, NoPredictionTravelsAndNoneIsTaken) {
  Json json = *ParseJson(EncodeSliceRequest(ExampleRequest()));
  EXPECT_FALSE(json["plan"].contains("predicted"));
  EXPECT_FALSE(json["plan"].contains("binding"));
  json["plan"]["binding"] = Json::array();
  EXPECT_THAT(DecodeSliceRequest(json.dump()).status().message(), HasSubstr("plan.binding"));
}

TEST(SliceCodec, APlanOfANewerRequestIsCheckedDespiteItsUnknownFields) {
  SliceRequest request = ExampleRequest();
  request.protocol = kProtocolVersion + 1;
  request.minimum_protocol = kProtocolVersion;
  Json json = *ParseJson(EncodeSliceRequest(request));
  json["plan"]["flavour"] = 1;
  EXPECT_TRUE(DecodeSliceRequest(json.dump()).ok());
  json["plan"]["blockElements"] = 24;
  EXPECT_THAT(DecodeSliceRequest(json.dump()).status().message(), HasSubstr("power of two"));
}

TEST(SliceCodec, AValueThatIsNotKnownIsRefusedWithThoseThatAre) {
  const auto message = [](const char* pointer, const char* value) {
    Json json = *ParseJson(EncodeSliceRequest(ExampleRequest()));
    json["training"][Json::json_pointer(pointer)] = value;
    return DecodeSliceRequest(json.dump()).status().message();
  };
  EXPECT_EQ(message("/dataset/format", "CSV"), "");
  EXPECT_EQ(message("/dataset/format", "csv"),
            "training.dataset.format: \"csv\" is not known here; did you mean CSV? There are IDX, "
            "CIFAR10, CIFAR100, CSV, NPY, WebDataset, ImageFolder, Text, Parquet");
  EXPECT_EQ(message("/loss", "Hinge"),
            "training.loss: \"Hinge\" is not known here; there are CrossEntropy, MSE, "
            "BCEWithLogits");
  EXPECT_THAT(message("/optimizer/name", "LAMB"), HasSubstr("there are SGD, Adam, AdamW"));
  EXPECT_THAT(message("/optimizer/schedule/name", "Poly"),
              HasSubstr("there are Constant, Step, Cosine"));
}

TEST(SliceCodec, TheLabelsOfCifar100ComeThrough) {
  SliceRequest request = ExampleRequest();
  request.training.dataset.format = DatasetFormat::kCifar100;
  request.training.dataset.cifar100_labels = CifarLabels::kCoarse;
  const auto decoded = DecodeSliceRequest(EncodeSliceRequest(request));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(decoded->training.dataset.format, DatasetFormat::kCifar100);
  EXPECT_EQ(decoded->training.dataset.cifar100_labels, CifarLabels::kCoarse);
}

TEST(SliceCodec, WhatIsSaidOfImagesComesThrough) {
  SliceRequest request = ExampleRequest();
  DatasetConfig& dataset = request.training.dataset;
  dataset.format = DatasetFormat::kWebDataset;
  dataset.image = {224, 192, 1};
  dataset.channel_mean = {0.5};
  dataset.channel_standard_deviation = {0.25};
  dataset.on_bad_sample = BadSamples::kSkip;
  dataset.max_bad_samples = 7;
  const auto decoded = DecodeSliceRequest(EncodeSliceRequest(request));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  const DatasetConfig& read = decoded->training.dataset;
  EXPECT_EQ(read.format, DatasetFormat::kWebDataset);
  EXPECT_EQ(read.image, dataset.image);
  EXPECT_EQ(read.channel_mean, dataset.channel_mean);
  EXPECT_EQ(read.channel_standard_deviation, dataset.channel_standard_deviation);
  EXPECT_EQ(read.on_bad_sample, BadSamples::kSkip);
  EXPECT_EQ(read.max_bad_samples, 7);
}

TEST(SliceCodec, AugmentationComesThroughWhole) {
  SliceRequest request = ExampleRequest();
  const Augmentation plain = request.training.dataset.augment;
  EXPECT_EQ(DecodeSliceRequest(EncodeSliceRequest(request))->training.dataset.augment, plain);
  request.training.dataset.augment = {
      .flip = true,
      .crop_padding = 2,
      .random_resized_crop = RandomResizedCrop{160, 128, 0.1, 0.9, 0.6, 1.7},
      .color_jitter = {0.4, 0.3, 0.2, 0.1},
      .mixup_alpha = 0.2};
  EXPECT_EQ(DecodeSliceRequest(EncodeSliceRequest(request))->training.dataset.augment,
            request.training.dataset.augment);
}

TEST(SliceCodec, WhatIsSaidOfTextsComesThrough) {
  SliceRequest request = ExampleRequest();
  DatasetConfig& dataset = request.training.dataset;
  dataset.format = DatasetFormat::kText;
  dataset.text = {"vocab.txt", Tokenizer::kWhitespace, 64};
  dataset.on_bad_sample = BadSamples::kSkip;
  dataset.max_bad_samples = 7;
  const auto decoded = DecodeSliceRequest(EncodeSliceRequest(request));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(decoded->training.dataset.text, dataset.text);
  EXPECT_EQ(decoded->training.dataset.on_bad_sample, BadSamples::kSkip);
  EXPECT_EQ(decoded->training.dataset.max_bad_samples, 7);
}

TEST(SliceCodec, RenderedDigitsComeThroughWhole) {
  SliceRequest request = ExampleRequest();
  EXPECT_FALSE(DecodeSliceRequest(EncodeSliceRequest(request))->training.dataset.rendered_digits);
  constexpr uint64_t kSeed = std::numeric_limits<uint64_t>::max();
  request.training.dataset.rendered_digits = RenderedDigitsConfig{600, 100, kSeed};
  const auto digits =
      DecodeSliceRequest(EncodeSliceRequest(request))->training.dataset.rendered_digits;
  ASSERT_TRUE(digits.has_value());
  EXPECT_EQ(digits->train, 600);
  EXPECT_EQ(digits->test, 100);
  EXPECT_EQ(digits->seed, kSeed);
}

TEST(SliceCodec, EveryMissingRequiredFieldIsNamedAtOnce) {
  const Status status = DecodeSliceRequest("{}").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  for (const char* name : {"protocol", "invocation", "job", "roles", "plan", "training", "store",
                           "leaderEpoch", "incarnation", "firstIteration", "budgetSeconds"}) {
    EXPECT_THAT(status.message(), HasSubstr(name));
  }
}

TEST(SliceCodec, WrongTypesAndUnknownFieldsHavePaths) {
  Json json = *ParseJson(EncodeSliceRequest(ExampleRequest()));
  json["training"]["optimizer"]["learningRte"] = 1;
  json["roles"][0]["kind"] = "boss";
  const Status status = DecodeSliceRequest(json.dump()).status();
  EXPECT_THAT(status.message(), HasSubstr("training.optimizer.learningRte"));
  EXPECT_THAT(status.message(), HasSubstr("roles[0].kind"));
}

TEST(SliceCodec, ProgressLinesAreTheGoldenFile) {
  ProgressLine line;
  line.iteration = 12;
  line.epoch = 1;
  line.seconds = 2.5;
  line.loss = 0.5;
  line.samples_per_second = 1200;
  line.objects_added = -3;
  line.puts = 7;
  line.gets = 12;
  line.evaluation = EvaluationPart{.loss_sum = 1.5,
                                   .correct = 9,
                                   .samples = 10,
                                   .correct_top5 = 10,
                                   .absolute_error_sum = 0.5,
                                   .weight_sum = 2.5};
  line.unreached_peers = 2;
  line.phases.emplace()[Phase::kCompute] = {2, 1.5, 0.25, 4};
  EXPECT_EQ(EncodeProgress(line), Golden("slice_progress.json"));
  const auto decoded = std::get<ProgressLine>(**DecodeSliceLine(EncodeProgress(line)));
  EXPECT_EQ(decoded.iteration, 12);
  EXPECT_EQ(decoded.seconds, 2.5);
  EXPECT_EQ(decoded.loss, 0.5);
  EXPECT_EQ(decoded.objects_added, -3);
  EXPECT_EQ(decoded.puts, 7);
  EXPECT_EQ(decoded.gets, 12);
  EXPECT_EQ(decoded.unreached_peers, 2);
  EXPECT_EQ(decoded.evaluation, line.evaluation);
  EXPECT_EQ(decoded.phases, line.phases);
  ProgressLine heartbeat;
  heartbeat.heartbeat = true;
  EXPECT_TRUE(std::get<ProgressLine>(**DecodeSliceLine(EncodeProgress(heartbeat))).heartbeat);
}

TEST(SliceCodec, AProgressLineOfANewerFunctionIsReadWithoutItsNewFields) {
  const auto line = DecodeSliceLine(R"({"type":"progress","iteration":7,"mood":"good"})");
  EXPECT_EQ(std::get<ProgressLine>(**line).iteration, 7);
}

TEST(SliceCodec, ALossThatIsNotANumberIsAbsent) {
  ProgressLine line;
  line.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(std::get<ProgressLine>(**DecodeSliceLine(EncodeProgress(line))).loss.has_value());
}

TEST(SliceCodec, RecordIsTheGoldenFileAndRoundTrips) {
  const std::string line = EncodeRecord(ExampleRecord());
  EXPECT_EQ(line, Golden("slice_record.json"));
  EXPECT_EQ(EncodeRecord(DecodedRecord(line)), line);
  EXPECT_EQ(DecodedRecord(line).phases, ExampleRecord().phases);
  EXPECT_EQ(DecodedRecord(line).latencies, ExampleRecord().latencies);
}

// The record with `change` made, sealed anew.
std::string Changed(const std::function<void(Json&)>& change) {
  Json json = *ParseJson(EncodeRecord(ExampleRecord()));
  json.erase("length");
  json.erase("xxh3");
  change(json);
  std::string line = json.dump();
  line.pop_back();
  const std::string digest = Hex64(Xxh3(AsBytes(line)));
  return line + ",\"length\":" + std::to_string(line.size()) + ",\"xxh3\":\"" + digest + "\"}";
}

TEST(SliceCodec, WhatASliceSpentIsReadStrictly) {
  ASSERT_TRUE(DecodeSliceLine(Changed([](Json&) {})).ok());
  const struct {
    const char* pointer;
    Json value;
    const char* message;
  } rows[] = {
      {"/phases", 7, "phases"},
      {"/phases/compute", "long", "phases.compute"},
      {"/phases/compute/wallSeconds", -1, "phases.compute.wallSeconds: must be 0 to 1e9 seconds"},
      {"/phases/compute/cpuSeconds", 1e300, "phases.compute.cpuSeconds: must be 0 to 1e9 seconds"},
      {"/phases/wait/throttledSeconds", Json::array(), "phases.wait.throttledSeconds"},
      {"/phases/pull/requests", -3, "phases.pull.requests: must be 0 to 1e15"},
      {"/phases/pull/requests", 1.5, "phases.pull.requests"},
      {"/phases/pull/requests", 2'000'000'000'000'000, "phases.pull.requests: must be 0 to 1e15"},
      {"/phases/load", -2, "phases.load: must be 0 to 1e9 seconds"},
      {"/latencies", Json::array(), "latencies"},
      {"/latencies/get/counts", Json::array({1, 2}), "latencies.get.counts: must be 16 numbers"},
      {"/latencies/get/counts", Json(std::vector<int>(17)), "latencies.get.counts"},
      {"/latencies/get/counts", Json(std::vector<int>(16, -1)), "latencies.get.counts"},
      {"/latencies/get/counts", nullptr, "latencies.get.counts"},
      {"/latencies/get/seconds", -0.5, "latencies.get.seconds: must be 0 to 1e9 seconds"},
      {"/store/puts", -1, "store.puts: must not be negative"},
  };
  for (const auto& row : rows) {
    const auto line = DecodeSliceLine(
        Changed([&](Json& json) { json[Json::json_pointer(row.pointer)] = row.value; }));
    ASSERT_FALSE(line.ok()) << row.pointer << " " << row.value;
    EXPECT_EQ(line.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(line.status().message(), HasSubstr(row.message));
  }
}

TEST(SliceCodec, AFunctionThatToldWallTimesAloneIsUnderstood) {
  const std::string line = Changed([](Json& json) {
    json.erase("latencies");
    json["phases"] = {{"load", 1.5}, {"compute", 2},    {"communicate", 3},
                      {"wait", 0.5}, {"checkpoint", 0}, {"evaluate", 0}};
  });
  const PhaseUsages phases = DecodedRecord(line).phases;
  EXPECT_EQ(phases[Phase::kLoad], (PhaseUsage{1.5, 0, 0, 0}));
  EXPECT_EQ(phases[Phase::kWait].wall_seconds, 0.5);
  EXPECT_EQ(phases[Phase::kPush].wall_seconds, 2.5);
  EXPECT_EQ(phases.WallSeconds(), 6.5);
  EXPECT_EQ(DecodedRecord(line).latencies, RequestLatencies{});
}

TEST(SliceCodec, FailedRecordKeepsItsError) {
  SliceRecord record;
  record.invocation = "x";
  record.outcome = SliceOutcome::kFailed;
  record.error = InvalidArgumentError("loss became NaN in iteration 7, \"}\xff");
  record.permanent = true;
  const SliceRecord decoded = DecodedRecord(EncodeRecord(record));
  EXPECT_EQ(decoded.error.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(decoded.error.message(), HasSubstr("iteration 7"));
  EXPECT_TRUE(decoded.permanent);
}

TEST(SliceCodec, ACutRecordNeverPasses) {
  const std::string line = EncodeRecord(ExampleRecord());
  for (size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(DecodeSliceLine(std::string_view(line).substr(0, size)).ok()) << size;
  }
}

TEST(SliceCodec, AChangedRecordNeverPasses) {
  const std::string line = EncodeRecord(ExampleRecord());
  std::string changed = line;
  changed.replace(changed.find("\"nextIteration\":100"), 19, "\"nextIteration\":101");
  EXPECT_FALSE(DecodeSliceLine(changed).ok());
}

// An operator that was put back reads the lines of functions that a newer one started.
TEST(SliceCodec, FieldsThatANewerFunctionAddsToItsLinesAreLeftOut) {
  const Json added = {{"x", 1}};
  const std::string record = Changed([&](Json& json) {
    for (const char* path : {"", "/checkpoint", "/phases", "/phases/compute", "/latencies",
                             "/latencies/put", "/store", "/evaluations/0"}) {
      json.at(Json::json_pointer(path))["fromTheFuture"] = added;
    }
  });
  EXPECT_EQ(EncodeRecord(DecodedRecord(record)), EncodeRecord(ExampleRecord()));
  Json progress = *ParseJson(Golden("slice_progress.json"));
  progress["fromTheFuture"] = added;
  progress["evaluation"]["fromTheFuture"] = added;
  EXPECT_EQ(EncodeProgress(std::get<ProgressLine>(**DecodeSliceLine(progress.dump()))),
            Golden("slice_progress.json"));
}

TEST(SliceCodec, LinesOfUnknownTypesAreSkipped) {
  EXPECT_EQ(DecodeSliceLine(R"({"type":"trace","x":1})").value(), std::nullopt);
  EXPECT_FALSE(DecodeSliceLine(R"({"x":1})").ok());
  EXPECT_FALSE(DecodeSliceLine("[]").ok());
}

RC_GTEST_PROP(SliceCodec, AnyTextIsSafeToDecode, (const std::string& text)) {
  RC_ASSERT(!DecodeSliceRequest(text).ok());
  RC_ASSERT(!DecodeSliceLine(text).ok());
}

}  // namespace
}  // namespace lambdadnn
