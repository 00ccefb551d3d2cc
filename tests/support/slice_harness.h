// SPDX-License-Identifier: Apache-2.0
// A whole job's functions in one process, on the arithmetic model: what the controller does to
// them, without a controller. One SliceService a role, as in production.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "common/protocol/slice.h"
#include "trainer_function/peer/tcp_network.h"
#include "trainer_function/server/slice_service.h"

namespace lambdadnn {

struct HarnessJob {
  Placement placement = Placement::kDedicated;
  TransportKind transport = TransportKind::kObjectStore;
  std::vector<int> layers = {1, 2, 4};
  int shards = 2;
  int spread = 1;
  int64_t parameters = 2 * 16 * 1024 + 100;  // of the model
  int64_t buffers = 0;                       // elements
  int64_t samples = 200;
  int64_t test_samples = 40;
  uint64_t data_checksum = 0;  // that the data set says; 0 = none
  // In place of the data set whose samples are numbers.
  std::function<Result<std::unique_ptr<Dataset>>()> open_dataset;
  // In place of an ArithmeticModel.
  std::function<std::unique_ptr<TrainableModel>()> make_model;
  std::function<StoreCounters()> data_requests;  // null = not counted
  int sample_memory_mib = 0;
  int global_batch = 32;
  int64_t epochs = 2;
  int64_t checkpoint_every = 0;
  int checkpoint_keep = 2;
  OptimizerConfig optimizer;
  std::optional<double> stop_at_loss;
  int64_t evaluate_every = 1;
  std::optional<EarlyStopping> early_stopping;
  std::optional<TestMetric> keep_best;
  uint64_t seed = 7;
  int64_t nan_at_version = -1;
  double budget_seconds = 60;

  Plan MakePlan() const;
  SliceRequest Request(const Role& role, int64_t incarnation,
                       std::optional<CheckpointReference> start, int attempt = 1) const;
  // Of each function: workers first, then dedicated servers.
  std::vector<Role> Roles() const;
};

// Called before a role's store operations begin; lets a test wrap the store of one role. The
// returned store is owned by the role.
using StoreWrapper =
    std::function<std::unique_ptr<ObjectStore>(const Role& role, ObjectStore& store)>;

// The same of the network of one role, which is not owned by it.
using NetworkWrapper = std::function<Network*(const Role& role, Network& network)>;

struct HarnessResult {
  std::map<std::string, SliceRecord> records;  // by role
  std::map<std::string, std::vector<ProgressLine>> lines;
  // All records are kFinished / kStopped.
  bool AllAre(SliceOutcome outcome) const;
  // Of the function with the root of shard 0.
  const SliceRecord& Leader(const HarnessJob& job) const;
};

class SliceHarness {
 public:
  // The store must outlive the harness.
  SliceHarness(Runtime& runtime, ObjectStore& store, HarnessJob job);

  void WrapStores(StoreWrapper wrapper) { wrapper_ = std::move(wrapper); }
  void WrapNetworks(NetworkWrapper wrapper) { network_wrapper_ = std::move(wrapper); }
  // From now on functions reach each other over sockets of this machine, but those whose roles
  // `unreachable` names.
  void ConnectFunctions(const std::set<std::string>& unreachable = {}, bool tls = true);
  // Starts every role; the services live until the next Start.
  Status Start(int64_t incarnation, const std::optional<CheckpointReference>& start,
               int attempt = 1);
  // The next slice of every role, in the functions of the last Start.
  Status GoOn(int64_t incarnation, const CheckpointReference& start);
  // One role in place of what had it, which ends at once.
  Status StartRole(const Role& role, int64_t incarnation,
                   const std::optional<CheckpointReference>& start, int attempt);
  SliceService& Service(const std::string& role) { return *services_.at(role); }
  std::string Invocation(const std::string& role) const { return invocations_.at(role); }
  // Waits for all records.
  HarnessResult Await();
  // Ends everything at once, as a kill would: no record is written.
  void Kill() { services_.clear(); }
  // Start and Await.
  HarnessResult Run(int64_t incarnation, const std::optional<CheckpointReference>& start,
                    int attempt = 1);
  const HarnessJob& job() const { return job_; }
  // By all roles so far.
  int datasets_opened() const { return datasets_opened_; }
  int models_made() const { return models_made_; }
  SliceEnvironment Environment(const Role& role);

 private:
  Runtime& runtime_;
  ObjectStore& store_;
  HarnessJob job_;
  StoreWrapper wrapper_;
  NetworkWrapper network_wrapper_;
  SliceRequest Request(const Role& role, int64_t incarnation,
                       const std::optional<CheckpointReference>& start, int attempt = 1) const;

  std::map<std::string, std::unique_ptr<TcpNetwork>> networks_;  // by role
  std::map<std::string, std::unique_ptr<SliceService>> services_;
  std::map<std::string, std::string> invocations_;
  std::atomic<int> datasets_opened_{0};
  std::atomic<int> models_made_{0};
};

// Reads lines until the record.
SliceRecord AwaitRecord(Runtime& runtime, SliceService& service, const std::string& invocation);

// XXH3 of results/model.safetensors, or of another result; "no model" when there is none.
std::string ModelDigest(ObjectStore& store, const std::string& name = "model.safetensors");

// Forwards everything to a store that it does not own.
std::unique_ptr<ObjectStore> BorrowStore(ObjectStore& store);

}  // namespace lambdadnn
