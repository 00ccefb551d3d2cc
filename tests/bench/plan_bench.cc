// SPDX-License-Identifier: Apache-2.0
// What choosing a plan costs. Reprint: build/<preset>/bin/plan_bench
#include <benchmark/benchmark.h>

#include "operator/planner/planner.h"
#include "tests/unit/operator/planner/planner_fixtures.h"

namespace lambdadnn {
namespace {

// λDNN's space at its largest: memory up to 10,240 MiB, up to 200 functions. state.range(0) is the
// deadline in per cent of the fastest time.
PlannerInput LargeSpace(PlannerInput input, double per_cent) {
  input.limits.min_memory_mib.reset();
  input.platform.memory.max_mib = 10240;
  input.objective.deadline_seconds = 1e-3;
  const double fastest = MakePlan(input)->certificate.fastest_seconds;
  input.objective.deadline_seconds = fastest * per_cent / 100;
  return input;
}

void Report(benchmark::State& state, const PlanningOutcome& outcome) {
  state.counters["evaluated"] = static_cast<double>(outcome.search.evaluated);
  state.counters["functions"] = outcome.plan.functions;
  state.counters["memory_mib"] = outcome.plan.memory_mib;
}

void BM_LambdaDnnPlan(benchmark::State& state) {
  PlannerInput input = LargeSpace(OneDCnn(10), static_cast<double>(state.range(0)));
  input.options.explain = false;
  PlanningOutcome outcome;
  for (auto _ : state) outcome = MakePlan(input).value();
  Report(state, outcome);
}
BENCHMARK(BM_LambdaDnnPlan)->Arg(105)->Arg(200)->Arg(1000)->Unit(benchmark::kMicrosecond);

void BM_LambdaDnnAlgorithm1(benchmark::State& state) {
  PlannerInput input = LargeSpace(OneDCnn(10), static_cast<double>(state.range(0)));
  input.options.explain = false;
  input.options.search = SearchMethod::kAlgorithm1;
  PlanningOutcome outcome;
  for (auto _ : state) outcome = MakePlan(input).value();
  Report(state, outcome);
}
BENCHMARK(BM_LambdaDnnAlgorithm1)->Arg(200)->Arg(1000)->Unit(benchmark::kMicrosecond);

void BM_LambdaDnnPlanExplained(benchmark::State& state) {
  const PlannerInput input = LargeSpace(OneDCnn(10), static_cast<double>(state.range(0)));
  PlanningOutcome outcome;
  for (auto _ : state) outcome = MakePlan(input).value();
  Report(state, outcome);
}
BENCHMARK(BM_LambdaDnnPlanExplained)->Arg(200)->Unit(benchmark::kMicrosecond);

// The extended model over n, m, K, layers and spread. range(0): largest n, range(1): explained.
void BM_ExtendedPlan(benchmark::State& state) {
  PlannerInput input = MobileNet(5);
  input.options.model = PredictionModel::kExtended;
  input.options.explain = state.range(1) != 0;
  input.platform.max_functions = static_cast<int>(state.range(0));
  input.platform.function_store_intercept = 60e6;
  input.platform.function_store_slope = 10e3;
  input.platform.store_bytes_per_second = 10e9;
  input.platform.store_request_seconds = 0.01;
  input.platform.prices.put_request = 5e-6;
  input.platform.prices.get_request = 4e-7;
  input.profile.merge_bytes_per_second = 1e9;
  input.objective.deadline_seconds = 3600;
  PlanningOutcome outcome;
  for (auto _ : state) outcome = MakePlan(input).value();
  Report(state, outcome);
}
BENCHMARK(BM_ExtendedPlan)->ArgsProduct({{16, 64, 200}, {0, 1}})->Unit(benchmark::kMillisecond);

// A paper's model over its own space, without explanation.
void BM_PaperPlan(benchmark::State& state, PredictionModel model) {
  PlannerInput input = MobileNet(5);
  input.options.model = model;
  input.options.explain = false;
  input.platform.store_request_seconds = 0.01;
  input.platform.prices.put_request = 5e-6;
  input.platform.prices.get_request = 4e-7;
  input.objective.deadline_seconds = 3600;
  PlanningOutcome outcome;
  for (auto _ : state) outcome = MakePlan(input).value();
  Report(state, outcome);
}
BENCHMARK_CAPTURE(BM_PaperPlan, feng, PredictionModel::kFeng)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_PaperPlan, fasdl, PredictionModel::kFasDl)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lambdadnn

BENCHMARK_MAIN();
