// SPDX-License-Identifier: Apache-2.0
// The bill counts what the prediction counts: a run that takes exactly what was predicted costs
// exactly that, whoever looks at it when.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "operator/controller/observe/job_memory.h"
#include "operator/planner/planner.h"
#include "operator/resources/function_groups.h"
#include "tests/unit/operator/planner/random_input.h"

namespace lambdadnn {
namespace {

constexpr int kInstances = 400;
// Of a run; a few of them have far more, in slices of seconds.
constexpr double kMostSlices = 5000;
// Times are whole nanoseconds.
constexpr double kRounding = 1e-6;

const JobMemory::News kNoNews = [](const Json&) {};

// All functions of the plan, of this age.
std::vector<FunctionInstance> FunctionsOf(const Plan& plan, double age_seconds) {
  std::vector<FunctionInstance> functions;
  const auto add = [&](const std::string& group, int count) {
    for (int i = 0; i < count; ++i) {
      FunctionInstance function;
      function.uid = group + std::to_string(i);
      function.group = group;
      function.phase = FunctionPhase::kReady;
      function.age_seconds = age_seconds;
      functions.push_back(function);
    }
  };
  add(WorkersGroupName(plan.revision), plan.functions);
  add(ServersGroupName(plan.revision), plan.aggregation.server_functions());
  return functions;
}

// Takes a random part of `*rest`; all of it for the last.
int64_t TakePart(Chooser* choose, bool last, int64_t* rest) {
  const int64_t most = std::min<int64_t>(*rest, 1'000'000'000);
  const int64_t part = last ? *rest : choose->Whole(0, static_cast<int>(most));
  *rest -= part;
  return part;
}

// Of a run that takes what the candidate's bill says, observed at random times.
UsageStatus UsageOf(const Job& job, const Platform& platform, const PlanCandidate& candidate,
                    Chooser* choose) {
  JobMemory memory;
  std::vector<double> looks = {candidate.predicted.seconds};
  for (int left = choose->Whole(0, 5); left > 0; --left) {
    looks.push_back(choose->Real(0, candidate.predicted.seconds));
  }
  std::sort(looks.begin(), looks.end());
  for (const double time : looks) {
    memory.ObserveInstances(FunctionsOf(*job.status.plan, time), job, platform,
                            Instant{} + FromSeconds(time), kNoNews);
  }
  const auto slices = static_cast<int64_t>(std::llround(candidate.bill.invocations));
  auto puts = static_cast<int64_t>(std::llround(candidate.bill.put_requests));
  auto gets = static_cast<int64_t>(std::llround(candidate.bill.get_requests));
  for (int64_t i = 0; i < slices; ++i) {
    SliceFact slice;
    slice.invocation = std::to_string(i);
    const bool last = i + 1 == slices;
    SliceRecord record;
    record.store.puts = TakePart(choose, last, &puts);
    record.store.gets = TakePart(choose, last, &gets);
    // A part of them is the data set's.
    record.metrics[kDataGetsMetric] =
        static_cast<double>(TakePart(choose, false, &record.store.gets));
    record.metrics[kDataListsMetric] =
        static_cast<double>(TakePart(choose, false, &record.store.puts));
    record.store.deletes = choose->Whole(0, 1000);  // they are free
    slice.record = std::make_shared<const SliceRecord>(record);
    memory.AddRecord(&slice, job, platform, Instant{}, kNoNews);
    memory.AddRecord(&slice, job, platform, Instant{}, kNoNews);  // once all the same
  }
  return memory.meter.usage;
}

TEST(Bills, OfARunThatTakesWhatWasPredictedAreThePredictedCost) {
  int compared = 0;
  int with_requests = 0;
  int with_gpus = 0;
  int with_data = 0;
  for (uint64_t seed = 1; seed <= kInstances; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PlannerInput input = RandomExtendedInput(seed);
    input.objective.deadline_seconds = 1e12;
    const Result<PlanningOutcome> outcome = MakePlan(input);
    if (!outcome.ok() || !outcome->feasible) continue;
    const PlanCandidate& candidate = outcome->chosen;
    const double cost = candidate.predicted.cost;
    ASSERT_NEAR(PriceOf(input.platform.prices, candidate.bill), cost, 1e-9 * cost);
    for (const ParetoPoint& point : outcome->pareto_front) {
      const PlanCandidate& other = point.candidate;
      ASSERT_NEAR(PriceOf(input.platform.prices, other.bill), other.predicted.cost,
                  1e-9 * other.predicted.cost);
    }
    if (candidate.bill.invocations > kMostSlices) continue;
    Job job;
    job.status.plan = outcome->plan;
    job.spec.functions.gpu = input.limits.gpu;
    Chooser choose(seed);
    const UsageStatus usage = UsageOf(job, input.platform, candidate, &choose);
    ASSERT_NEAR(usage.cost, cost, kRounding * cost);
    ASSERT_NEAR(usage.billed_gib_seconds, candidate.bill.gib_seconds,
                kRounding * candidate.bill.gib_seconds);
    ++compared;
    if (candidate.bill.put_requests > 0) ++with_requests;
    if (candidate.bill.gpu_seconds > 0) ++with_gpus;
    const bool reads_again = outcome->plan.sample_memory_mib > 0 && candidate.bill.get_requests > 0;
    if (input.profile.open_requests > 0 || reads_again) ++with_data;
  }
  EXPECT_GE(compared, kInstances / 2);
  EXPECT_GE(with_requests, kInstances / 4);
  EXPECT_GE(with_gpus, kInstances / 20);
  EXPECT_GE(with_data, kInstances / 5);
}

// --- Slices that are not over, or lost ---

class SliceChargeTest : public testing::Test {
 protected:
  SliceChargeTest() {
    platform_.prices = {.gib_second = 0,
                        .vcpu_second = 0,
                        .put_request = 100,
                        .get_request = 1,
                        .invocation = 10'000};
    job_.status.plan.emplace();
    SliceFact& slice = memory_.observations.slices["slice"];
    slice.invocation = "slice";
    slice.instance_uid = "workers0";
    Functions(FunctionPhase::kReady);
  }

  void Functions(FunctionPhase phase) {
    std::vector<FunctionInstance> functions(1);
    functions[0].uid = "workers0";
    functions[0].group = "workers";
    functions[0].phase = phase;
    memory_.ObserveInstances(functions, job_, platform_, now_, kNoNews);
  }
  void Tell(SlicePhase phase, std::optional<ProgressLine> last = std::nullopt,
            std::shared_ptr<const SliceRecord> record = nullptr) {
    SliceView view;
    view.invocation = "slice";
    view.instance_uid = "workers0";
    view.phase = phase;
    view.last = last;
    view.record = std::move(record);
    memory_.ObserveSlices({view}, job_, platform_, now_, kNoNews);
  }
  static ProgressLine Requests(int64_t puts, int64_t gets) {
    ProgressLine line;
    line.puts = puts;
    line.gets = gets;
    return line;
  }
  static std::shared_ptr<const SliceRecord> Record(int64_t puts, int64_t gets) {
    SliceRecord record;
    record.invocation = "slice";
    record.store.puts = puts;
    record.store.gets = gets;
    return std::make_shared<const SliceRecord>(record);
  }
  double Cost() const { return memory_.meter.usage.cost; }
  double Spent() const { return memory_.meter.Spent(); }

  JobMemory memory_;
  Job job_;
  Platform platform_;
  Instant now_ = Instant{} + std::chrono::hours(1);
};

TEST_F(SliceChargeTest, DecisionsCountWhatARunningSliceToldBeforeItsRecordCharges) {
  Tell(SlicePhase::kStarting);
  EXPECT_EQ(Spent(), 0) << "the function has not answered";
  Tell(SlicePhase::kRunning);
  EXPECT_EQ(Spent(), 10'000);
  Tell(SlicePhase::kRunning, Requests(3, 5));
  EXPECT_EQ(Spent(), 10'305);
  EXPECT_EQ(Cost(), 0);
  Tell(SlicePhase::kEnded, Requests(3, 5), Record(4, 6));
  EXPECT_EQ(Spent(), 10'406);
  EXPECT_EQ(Cost(), 10'406);
}

TEST_F(SliceChargeTest, ALostSliceIsChargedForWhatItTold) {
  Tell(SlicePhase::kRunning, Requests(3, 5));
  Functions(FunctionPhase::kGone);
  Tell(SlicePhase::kLost, Requests(3, 5));
  EXPECT_EQ(Cost(), 10'305);
  EXPECT_EQ(Spent(), 10'305);
  // It had written its record before it died.
  SliceFact& slice = memory_.observations.slices.at("slice");
  slice.record = Record(4, 6);
  memory_.AddRecord(&slice, job_, platform_, now_, kNoNews);
  EXPECT_EQ(Cost(), 10'406);
}

TEST_F(SliceChargeTest, WhatNeverAnsweredIsNotCharged) {
  Tell(SlicePhase::kRefused);
  Functions(FunctionPhase::kGone);
  EXPECT_EQ(Spent(), 0);
}

TEST_F(SliceChargeTest, NoFunctionLowersTheCost) {
  Tell(SlicePhase::kRunning, Requests(-1'000'000, -5));
  EXPECT_EQ(Spent(), 10'000);
}

// The functions of an earlier plan are charged as what they are until they are gone.
TEST(FunctionCharge, IsOfTheSizeThatTheFunctionWasMadeWith) {
  Platform platform;
  platform.prices.gib_second = 1;
  Job job;
  job.status.plan.emplace();
  job.status.plan->memory_mib = 1024;
  JobMemory memory;
  std::vector<FunctionInstance> functions(1);
  functions[0].uid = "workers0";
  functions[0].group = "workers";
  functions[0].phase = FunctionPhase::kReady;
  for (const double time : {10.0, 30.0}) {
    functions[0].age_seconds = time;
    memory.ObserveInstances(functions, job, platform, Instant{} + FromSeconds(time), kNoNews);
    job.status.plan->revision = 2;
    job.status.plan->memory_mib = 4096;
  }
  EXPECT_NEAR(memory.meter.usage.cost, 30, 1e-9);
}

}  // namespace
}  // namespace lambdadnn
