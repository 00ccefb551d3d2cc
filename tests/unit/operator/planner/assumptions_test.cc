// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/assumptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace lambdadnn {
namespace {

using testing::Contains;
using testing::IsEmpty;

// Nothing is left to assume, by any model.
PlannerInput Known() {
  PlannerInput input;
  WorkloadProfile& profile = input.profile;
  profile.evaluation_samples = 100;
  profile.evaluation_rate.intercept = 50;
  profile.merge_bytes_per_second = {1e9, Origin::kMeasured};
  profile.cold_start_seconds = profile.checkpoint_seconds = 0.5;
  profile.checkpoint_cpu_seconds = 0.1;
  profile.iteration_cpu_seconds = 0.01;
  profile.worker_base_memory_mib = 120;
  Platform& platform = input.platform;
  platform.milli_cpu_per_gib = 1000;
  platform.total_milli_cpu = platform.total_memory_mib = 8000;
  platform.function_timeout_seconds = 900;
  platform.function_network_bytes_per_second = 1e8;
  platform.parameter_server_network_bytes_per_second = 1e9;
  platform.store_bytes_per_second = {1e8, Origin::kMeasured};
  platform.store_request_seconds = {0.001, Origin::kMeasured};
  return input;
}

std::vector<std::string> LinesOf(const PlannerInput& input) {
  std::vector<std::string> lines;
  for (const Assumption& assumption : AssumptionsOf(input)) {
    lines.push_back(assumption.field + ": " + assumption.taken);
  }
  return lines;
}

struct AssumptionRow {
  std::function<void(PlannerInput*)> change;
  const char* line;  // "" = nothing is assumed
  PredictionModel model = PredictionModel::kExtended;
};

const AssumptionRow kRows[] = {
    {[](PlannerInput*) {}, ""},
    {[](PlannerInput*) {}, "", PredictionModel::kLambdaDnn},
    {[](PlannerInput*) {}, "", PredictionModel::kFeng},
    {[](PlannerInput*) {}, "", PredictionModel::kFasDl},
    {[](auto* in) { in->profile.evaluation_rate = {}; },
     "profile.evaluationRate: evaluations take no time"},
    {[](auto* in) {
       in->profile.evaluation_rate = {};
       in->profile.evaluation_samples = 0;
     },
     ""},
    {[](auto* in) { in->profile.merge_bytes_per_second = {}; },
     "profile.mergeBytesPerSecond: servers merge in no time"},
    {[](auto* in) { in->profile.merge_bytes_per_second = {}; }, "", PredictionModel::kLambdaDnn},
    {[](auto* in) { in->profile.cold_start_seconds = 0; },
     "profile.coldStartSeconds: functions start in no time"},
    {[](auto* in) { in->aggregation.transport = TransportKind::kDirect; },
     "profile.directSeconds: connections take what they took on a development machine"},
    {[](auto* in) {
       in->aggregation.transport = TransportKind::kDirect;
       in->profile.direct.hop_seconds = 1e-4;
     },
     ""},
    {[](auto* in) { in->platform.milli_cpu_per_gib = {}; },
     "platform.milliCpuPerGiB: each function has a core of its own, whatever its memory"},
    {[](auto* in) { in->platform.total_milli_cpu = {}; },
     "platform.totalMilliCpu: functions never share a core, however many there are"},
    {[](auto* in) {
       in->platform.total_milli_cpu = in->platform.total_memory_mib = {};
       in->platform.nodes = {{4096, 2000, 10}};
     },
     ""},
    {[](auto* in) { in->platform.store_bytes_per_second = {}; },
     "platform.store.bytesPerSecond: the store is as fast as all functions together"},
    {[](auto* in) {
       in->platform.store_bytes_per_second = in->platform.store_request_seconds = {};
       in->profile.store_bytes_per_second = {1e8, Origin::kMeasured};
       in->profile.store_request_seconds = {0.001, Origin::kMeasured};
     },
     ""},
    {[](auto* in) {
       in->platform.store_request_seconds = {};
       in->profile.store_request_seconds = 0.001;
     },
     "platform.store.requestSeconds: a request to the store takes no time", PredictionModel::kFeng},
    {[](auto* in) { in->platform.store_request_seconds = 0; }, ""},
    {[](auto* in) {
       in->limits.gpu = 1;
       in->platform.total_gpus = 2;
     },
     "functions.gpu: steps take on a GPU what the profile says, whatever else shares its machine"},
    {[](auto* in) { in->platform.function_timeout_seconds = {900, Origin::kDefault}; },
     "platform.functionTimeoutSeconds: 900 s"},
    {[](auto* in) { in->platform.store_bytes_per_second = {4e8, Origin::kDefault}; },
     "platform.store.bytesPerSecond: 400 MB/s, not measured (lambdadnn run measures it)"},
    {[](auto* in) { in->platform.store_request_seconds = {0.0005, Origin::kDefault}; },
     "platform.store.requestSeconds: 0.5 ms a request, not measured (lambdadnn run measures it)"},
};

TEST(Assumptions, WhatNobodyGaveOrMeasuredIsSaid) {
  for (const AssumptionRow& row : kRows) {
    PlannerInput input = Known();
    input.options.model = row.model;
    row.change(&input);
    SCOPED_TRACE(row.line);
    if (row.line[0] == '\0') {
      EXPECT_THAT(LinesOf(input), IsEmpty());
    } else {
      EXPECT_THAT(LinesOf(input), testing::ElementsAre(row.line));
    }
  }
}

TEST(Assumptions, OfGpusTheirNumberAndPriceAreAssumedWhereNobodyGaveThem) {
  PlannerInput input = Known();
  input.limits.gpu = 1;
  const std::string number =
      "platform.gpus: there is a GPU for each of platform.maxFunctions functions";
  const std::string price = "platform.prices.gpuSecond: a GPU costs nothing";
  EXPECT_THAT(LinesOf(input), Contains(number));
  EXPECT_THAT(LinesOf(input), testing::Not(Contains(price))) << "nothing costs anything";
  input.platform.prices.gib_second = 1;
  EXPECT_THAT(LinesOf(input), Contains(price));
  input.platform.prices.gpu_second = 1;
  input.platform.nodes = {{4096, 2000, 10, 1}};
  EXPECT_THAT(LinesOf(input), testing::Not(testing::AnyOf(Contains(price), Contains(number))));
}

TEST(Assumptions, AnEmptyInputAssumesEverythingThatItsModelReads) {
  EXPECT_EQ(LinesOf({}).size(), 10u);
  EXPECT_THAT(LinesOf({}), Contains("platform.functionTimeoutSeconds: 900 s"));
}

}  // namespace
}  // namespace lambdadnn
