// SPDX-License-Identifier: Apache-2.0
// In virtual time, without faults, an iteration of the production collective takes what the
// planner's formula for the pipelined exchange says, and not what a sequential one would take:
// nearly exactly where the store says when an object has come, and a share of the waiting times
// later where consumers must ask.
#include "common/plan/iteration_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/plan/poll_schedule.h"
#include "common/protocol/object_header.h"
#include "tests/simulation/gang_driver.h"
#include "tests/simulation/sim_training.h"

namespace lambdadnn::simulation {
namespace {

constexpr double kRequestSeconds = 0.01;
constexpr double kBytesPerSecond = 4000;
constexpr double kComputeSeconds = 0.5;
// Consumers poll: at each hop they find an object up to an eighth of the waiting time after it came
// (common/plan/poll_schedule.h); plans here have up to five hops.
constexpr double kPollingShare = 0.25;
// With hints: what the formula leaves out.
constexpr double kHintedShare = 0.02;

// Who waits for what. One thread runs all fibers.
class Arrivals {
 public:
  class Hint final : public ArrivalWatch {
   public:
    Hint(Arrivals& arrivals, SimProcess& process, std::string_view key)
        : arrivals_(arrivals),
          clock_(process.runtime().clock),
          key_(key),
          monitor_(process.runtime().executor.NewMonitor()) {
      arrivals_.waiting_.insert(this);
    }
    ~Hint() override { arrivals_.waiting_.erase(this); }
    bool Wait(Duration at_most) override {
      const Instant deadline = clock_.Now() + at_most;
      const MonitorLock lock(*monitor_);
      while (!came_ && monitor_->WaitUntil(deadline)) {
      }
      return std::exchange(came_, false);
    }

   private:
    friend class Arrivals;
    Arrivals& arrivals_;
    Clock& clock_;
    const std::string key_;
    const std::unique_ptr<Monitor> monitor_;
    bool came_ = false;
  };

  void Tell(std::string_view key) {
    for (Hint* hint : waiting_) {
      if (hint->key_ != key) continue;
      hint->came_ = true;
      hint->monitor_->NotifyAll();
    }
  }

 private:
  std::set<Hint*> waiting_;
};

// The simulated store, with hints.
class HintingStore final : public ObjectStore {
 public:
  HintingStore(SimBucket& bucket, SimProcess& process, Arrivals& arrivals)
      : store_(bucket, process), process_(process), arrivals_(arrivals) {}
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override {
    return store_.Put(key, parts, options);
  }
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override {
    return store_.Get(key, range);
  }
  Result<ObjectInfo> Head(std::string_view key) override { return store_.Head(key); }
  Status Delete(std::string_view key) override { return store_.Delete(key); }
  Status DeleteMany(std::span<const std::string> keys) override { return store_.DeleteMany(keys); }
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override {
    return store_.List(prefix, start_after, limit);
  }
  std::unique_ptr<ArrivalWatch> Watch(std::string_view key) override {
    return std::make_unique<Arrivals::Hint>(arrivals_, process_, key);
  }
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return store_.Describe(); }

 private:
  SimObjectStore store_;
  SimProcess& process_;
  Arrivals& arrivals_;
};

Scenario MakeTimedScenario(const std::vector<int>& layers, int shards, int spread) {
  Scenario scenario;
  Plan& plan = scenario.plan;
  plan.aggregation.layers = layers;
  plan.aggregation.shards = shards;
  plan.aggregation.spread = spread;
  plan.functions = layers.back();
  plan.block_elements = kSimulatedBlockElements;
  plan.parameters = 60 * plan.block_elements;
  plan.global_batch_size = 4 * plan.functions;
  plan.local_batch_size = 4;
  plan.virtual_partitions = plan.functions;
  plan.iterations = 20;
  plan.iterations_per_epoch = 20;
  scenario.training.training_samples = 20 * plan.global_batch_size;
  scenario.training.seed = 1;
  scenario.slice_seconds = 3600;
  scenario.store.request_seconds = kRequestSeconds;
  scenario.store.jitter = 0;
  scenario.store.bytes_per_second = kBytesPerSecond;
  return scenario;
}

struct Measured {
  double seconds = 0;       // mean time between the weights of neighbouring versions
  double misses_a_get = 0;  // requests in vain for each object that is read
};

// Of iterations 5 to 18.
Measured MeasureIterations(const Scenario& scenario, bool hints) {
  Arrivals arrivals;
  SimScheduler scheduler(1);
  FaultInjector faults(scheduler.random(), {}, {});
  SimBucket bucket(scheduler, faults, scenario.store);
  SimPlatform platform(scheduler, faults, scenario.platform, [&](SimFunction& function) {
    SliceEnvironment environment;
    SimProcess& process = *function.process;
    environment.make_model = [&](const TrainingConfig&, const DatasetInfo&, int) {
      return Result<std::unique_ptr<TrainableModel>>(MakeSimModel(
          scenario.plan.parameters, 0,
          [&](int64_t) { process.runtime().clock.SleepFor(FromSeconds(kComputeSeconds)); }));
    };
    environment.open_dataset = [&](const DatasetConfig&) {
      return Result<std::unique_ptr<Dataset>>(
          MakeSimDataset(scenario.training.training_samples, 0));
    };
    environment.open_store = [&](const StoreReference&) {
      std::unique_ptr<ObjectStore> opened;
      if (hints) opened = std::make_unique<HintingStore>(bucket, process, arrivals);
      if (!hints) opened = std::make_unique<SimObjectStore>(bucket, process);
      return Result<std::unique_ptr<ObjectStore>>(std::move(opened));
    };
    return environment;
  });
  std::map<int64_t, Instant> last_weights;
  int64_t gets = 0;
  int64_t misses = 0;
  bucket.Observe([&](const StoreEffect& effect) {
    if (last_weights.contains(5) && !last_weights.contains(18)) {
      if (effect.operation == "get") ++gets;
      if (effect.operation == "miss") ++misses;
    }
    if (effect.operation == "put") arrivals.Tell(effect.key);
    if (effect.operation != "put" || effect.key.find("/w/") == std::string_view::npos) return;
    last_weights[DecodeHeader(effect.bytes)->iteration] = scheduler.Now();
  });
  SimProcess& driver = scheduler.NewProcess("driver");
  driver.set_role("driver");
  SimObjectStore store(bucket, driver);
  GangResult result;
  (void)driver.Spawn("main", [&] { DriveGang(scenario, "job", platform, driver, store, &result); });
  // The gang is left alone once the iterations that are measured are over.
  const Status ran =
      scheduler.Run([&] { return last_weights.contains(19) || !result.error.ok(); }, {});
  EXPECT_TRUE(ran.ok() && result.error.ok())
      << ran.ToString() << result.error.ToString() << result.slices << " slices, "
      << result.records.size() << " records, incarnation " << result.incarnation;
  if (!last_weights.contains(18)) return {};
  return {ToSeconds(last_weights.at(18) - last_weights.at(5)) / 13,
          static_cast<double>(misses) / static_cast<double>(std::max<int64_t>(1, gets))};
}

class IterationTime : public testing::TestWithParam<std::tuple<std::vector<int>, int, int>> {};

TEST_P(IterationTime, IsThatOfThePipelinedFormula) {
  const auto& [layers, shards, spread] = GetParam();
  const Scenario scenario = MakeTimedScenario(layers, shards, spread);
  ExchangeShape shape;
  shape.aggregation = scenario.plan.aggregation;
  shape.parameters = scenario.plan.parameters;
  shape.block_elements = scenario.plan.block_elements;
  ExchangeSpeeds speeds;
  speeds.worker_bytes_per_second = speeds.server_bytes_per_second = kBytesPerSecond;
  speeds.request_seconds = kRequestSeconds;
  speeds.requests_in_flight = 4;
  const double pipelined = kComputeSeconds + PipelinedIterationSeconds(shape, speeds);
  const double sequential = kComputeSeconds + SequentialIterationSeconds(shape, speeds);
  const double hinted = MeasureIterations(scenario, true).seconds;
  EXPECT_NEAR(hinted, pipelined, kHintedShare * pipelined)
      << "with hints; pipelined " << pipelined << ", sequential " << sequential;
  const double measured = MeasureIterations(scenario, false).seconds;
  RecordProperty("measured", std::to_string(measured));
  RecordProperty("hinted", std::to_string(hinted));
  RecordProperty("pipelined", std::to_string(pipelined));
  EXPECT_NEAR(measured, pipelined, kPollingShare * pipelined)
      << "pipelined " << pipelined << ", sequential " << sequential;
  if (shards > 1) {
    EXPECT_LT(measured, 0.85 * sequential) << "as slow as one shard after the other";
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, IterationTime,
                         testing::Values(std::tuple(std::vector<int>{1, 2}, 1, 1),
                                         std::tuple(std::vector<int>{1, 4}, 5, 1),
                                         std::tuple(std::vector<int>{1, 2, 4}, 5, 1),
                                         std::tuple(std::vector<int>{1, 2, 4, 8}, 5, 1),
                                         std::tuple(std::vector<int>{1, 4}, 4, 2)));

// Pulls that wait for one of the four threads of their pool find their objects at once, and must
// not make the others ask too early: K > 4 weights at a worker, fan-in x shards > 4 gradients at a
// server.
class Misses : public testing::TestWithParam<std::tuple<std::vector<int>, int, double>> {};

TEST_P(Misses, AreFewHoweverManyObjectsAnIterationWaitsFor) {
  const auto& [layers, shards, most] = GetParam();
  Scenario scenario = MakeTimedScenario(layers, shards, 1);
  scenario.store.jitter = 0.2;
  const Measured measured = MeasureIterations(scenario, false);
  // As the planner counts them, of the gradients.
  const double to_mean_shard = (measured.seconds - kComputeSeconds) * (shards + 1) / (2.0 * shards);
  const double predicted = ExpectedMisses(kComputeSeconds + to_mean_shard, 0, kRequestSeconds);
  RecordProperty("missesAGet", std::to_string(measured.misses_a_get));
  RecordProperty("predicted", std::to_string(predicted));
  EXPECT_GT(measured.seconds, 0);
  EXPECT_NEAR(predicted, measured.misses_a_get, 0.7 * measured.misses_a_get);
  EXPECT_LT(measured.misses_a_get, most);
}

INSTANTIATE_TEST_SUITE_P(Plans, Misses,
                         testing::Values(std::tuple(std::vector<int>{1, 2}, 1, 6),
                                         std::tuple(std::vector<int>{1, 2}, 12, 3),
                                         std::tuple(std::vector<int>{1, 8}, 6, 4),
                                         std::tuple(std::vector<int>{1, 2, 8}, 12, 3)));

}  // namespace
}  // namespace lambdadnn::simulation
