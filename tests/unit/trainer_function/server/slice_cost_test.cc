// SPDX-License-Identifier: Apache-2.0
// What an iteration asks of the store, on every store: exactly the formulas of common/plan, for the
// cross of tree, number of workers, shards, spread and clipping.
#include "common/plan/slice_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/objectstore/filesystem_object_store.h"
#include "common/objectstore/memory_object_store.h"
#include "common/objectstore/retrying_object_store.h"
#include "common/objectstore/s3_object_store.h"
#include "common/plan/collective_cost.h"
#include "tests/support/paths.h"
#include "tests/support/slice_harness.h"
#include "tests/support/strict_s3_server.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

enum class StoreKind { kMemory, kFiles, kStrictS3 };

struct CostCase {
  StoreKind store;
  std::vector<int> layers;  // [1, ..., workers]
  int shards;
  int spread;
  bool clip;
  Placement placement = Placement::kDedicated;
};

std::string CaseName(const testing::TestParamInfo<CostCase>& info) {
  std::string name = "layers";
  for (const int width : info.param.layers) name += "_" + std::to_string(width);
  name += "_shards_" + std::to_string(info.param.shards);
  name += "_spread_" + std::to_string(info.param.spread);
  if (info.param.placement == Placement::kWorkers) name += "_on_workers";
  return name + (info.param.clip ? "_clipped" : "");
}

// Every spread that divides the shards; clipping with every second of them, so that each tree has
// it with and without a spread.
std::vector<CostCase> Cross(StoreKind store, const std::vector<std::vector<int>>& trees,
                            const std::vector<int>& shards,
                            Placement placement = Placement::kDedicated) {
  std::vector<CostCase> cases;
  for (const std::vector<int>& layers : trees) {
    for (const int k : shards) {
      for (int spread = 1; spread <= k; ++spread) {
        if (k % spread == 0) {
          cases.push_back({store, layers, k, spread, cases.size() % 2 == 1, placement});
        }
      }
    }
  }
  return cases;
}

class SliceCost : public testing::TestWithParam<CostCase> {
 protected:
  // Of one role: as in a run, each has a client of its own.
  std::unique_ptr<ObjectStore> Open() {
    switch (GetParam().store) {
      case StoreKind::kMemory:
        return BorrowStore(*memory_);
      case StoreKind::kFiles:
        return std::make_unique<FilesystemObjectStore>(folder_);
      case StoreKind::kStrictS3:
        break;
    }
    S3Options options;
    options.endpoint = server_->endpoint();
    options.bucket = server_->service().options().bucket;
    options.region = server_->service().options().region;
    options.credentials = server_->service().options().credentials;
    return std::make_unique<RetryingObjectStore>(
        std::make_unique<S3ObjectStore>(
            NewDataTransport({.inactivity_seconds = 60, .ca_file = ""}).value(), runtime_.clock,
            options),
        runtime_,
        RetryOptions{.first_wait_seconds = 0.01, .max_wait_seconds = 1, .budget_seconds = 60});
  }

  static HarnessJob MakeJob() {
    HarnessJob job;
    job.layers = GetParam().layers;
    job.shards = GetParam().shards;
    job.spread = GetParam().spread;
    job.placement = GetParam().placement;
    job.parameters = 6 * 16 * 1024 + 5;
    job.samples = 3 * job.global_batch;
    if (GetParam().clip) job.optimizer.clip_global_norm = 1;
    job.budget_seconds = 600;
    return job;
  }

  // On a store of its own.
  HarnessResult Train(HarnessJob job, int64_t epochs) {
    job.epochs = epochs;
    folder_ = MakeTempDir();
    memory_ = std::make_unique<MemoryObjectStore>();
    if (GetParam().store == StoreKind::kStrictS3) {
      server_ = std::make_unique<StrictS3Server>(runtime_, StrictS3Options{});
    }
    SliceHarness harness(runtime_, *memory_, job);
    harness.WrapStores([this](const Role&, ObjectStore&) { return Open(); });
    const HarnessResult result = harness.Run(0, std::nullopt);
    for (const auto& [role, record] : result.records) {
      EXPECT_EQ(record.outcome, SliceOutcome::kFinished) << role << ": " << record.error.ToString();
    }
    if (server_ != nullptr) {
      EXPECT_THAT(server_->service().violations(), testing::IsEmpty());
    }
    return result;
  }

  SystemRuntime runtime_;
  std::unique_ptr<MemoryObjectStore> memory_;
  std::string folder_;
  std::unique_ptr<StrictS3Server> server_;
};

RequestCount CostOf(const ExchangeShape& shape, const Role& role) {
  if (shape.aggregation.placement == Placement::kWorkers) {
    return HostIterationCost(shape, role.rank);
  }
  return role.kind == RoleKind::kWorker ? WorkerIterationCost(shape)
                                        : ServerIterationCost(shape, role.position);
}

TEST_P(SliceCost, TwoLengthsDifferByTheFormulaTimesTheirIterations) {
  const HarnessJob job = MakeJob();
  // Equally long in digits, so that the manifests' text is equally long.
  const HarnessResult shorter = Train(job, 2);
  const HarnessResult longer = Train(job, 3);
  const ExchangeShape shape = {job.MakePlan().aggregation, job.parameters, GetParam().clip};
  const int64_t iterations = job.MakePlan().iterations_per_epoch;
  for (const Role& role : job.Roles()) {
    SCOPED_TRACE(role.Name());
    const RequestCount cost = CostOf(shape, role);
    const StoreCounters& first = shorter.records.at(role.Name()).store;
    const StoreCounters& second = longer.records.at(role.Name()).store;
    EXPECT_EQ(second.puts - first.puts, iterations * cost.puts);
    EXPECT_EQ(second.gets - first.gets, iterations * cost.gets);
    EXPECT_EQ(second.deletes - first.deletes, iterations * cost.deletes);
    EXPECT_EQ(second.bytes_in - first.bytes_in, iterations * cost.bytes_in);
    EXPECT_EQ(second.bytes_out - first.bytes_out, iterations * cost.bytes_out);
    EXPECT_EQ(second.lists, first.lists);
    EXPECT_EQ(second.retries, 0);
    EXPECT_LE(second.misses, kMaxMissesPerObject * second.gets);
  }
}

TEST_P(SliceCost, WhatIsAskedBesideTheExchangeIsThatOfSlicesAndCheckpoints) {
  HarnessJob job = MakeJob();
  job.data_checksum = 1;
  const HarnessResult result = Train(job, 2);
  StoreCounters all;
  for (const auto& [role, record] : result.records) all += record.store;
  const Plan plan = job.MakePlan();
  const RequestCount exchange = IterationCost({plan.aggregation, job.parameters, GetParam().clip});
  const Bill beside =
      SliceRequests(plan.aggregation, {.kept_checkpoints = job.checkpoint_keep, .models = 1});
  const int64_t iterations = 2 * plan.iterations_per_epoch;
  EXPECT_EQ(static_cast<double>(all.PricedPuts() - iterations * exchange.puts),
            beside.put_requests);
  // Each worker asks for a record of its data that is not there yet.
  const int64_t records = plan.functions;
  EXPECT_EQ(static_cast<double>(all.gets + all.heads - iterations * exchange.gets + records),
            beside.get_requests);
}

const std::vector<std::vector<int>> kTrees = {{1, 1},    {1, 2},       {1, 4},
                                              {1, 2, 4}, {1, 2, 4, 8}, {1, 3, 9}};

INSTANTIATE_TEST_SUITE_P(Memory, SliceCost,
                         testing::ValuesIn(Cross(StoreKind::kMemory, kTrees, {1, 2, 6})), CaseName);
INSTANTIATE_TEST_SUITE_P(MemoryOnWorkers, SliceCost,
                         testing::ValuesIn(Cross(StoreKind::kMemory, kTrees, {1, 6},
                                                 Placement::kWorkers)),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Files, SliceCost,
                         testing::ValuesIn(Cross(StoreKind::kFiles,
                                                 {{1, 2}, {1, 2, 4, 8}, {1, 3, 9}}, {1, 2})),
                         CaseName);
// Each question there is a signed request over a socket: fewer of the large trees.
INSTANTIATE_TEST_SUITE_P(StrictS3, SliceCost,
                         testing::Values(CostCase{StoreKind::kStrictS3, {1, 2}, 4, 1, true},
                                         CostCase{StoreKind::kStrictS3, {1, 2, 4, 8}, 2, 2, true},
                                         CostCase{StoreKind::kStrictS3, {1, 3, 9}, 2, 1, false}),
                         CaseName);

}  // namespace
}  // namespace lambdadnn
