// SPDX-License-Identifier: Apache-2.0
#include "tests/support/slice_harness.h"

#include <variant>

#include "common/base/process_usage.h"
#include "common/protocol/exchange_peers.h"
#include "common/protocol/object_keys.h"
#include "common/protocol/slice_codec.h"
#include "tests/support/arithmetic_model.h"
#include "tests/support/borrowed_store.h"

namespace lambdadnn {
namespace {

constexpr char kPrefix[] = "root/team/uid-1";

}  // namespace

std::unique_ptr<ObjectStore> BorrowStore(ObjectStore& store) {
  return std::make_unique<BorrowedStore>(store);
}

Plan HarnessJob::MakePlan() const {
  Plan plan;
  plan.functions = layers.back();
  plan.global_batch_size = global_batch;
  plan.local_batch_size = (global_batch + plan.functions - 1) / plan.functions;
  plan.iterations_per_epoch = (samples + global_batch - 1) / global_batch;
  plan.iterations = plan.iterations_per_epoch * epochs;
  plan.aggregation.placement = placement;
  plan.aggregation.transport = transport;
  plan.aggregation.layers = layers;
  plan.aggregation.shards = shards;
  plan.aggregation.spread = spread;
  plan.virtual_partitions = (64 + plan.functions - 1) / plan.functions * plan.functions;
  plan.checkpoint_every = checkpoint_every;
  plan.sample_memory_mib = sample_memory_mib;
  plan.parameters = VectorElements(parameters, buffers, plan.block_elements);
  plan.buffers = buffers;
  return plan;
}

SliceRequest HarnessJob::Request(const Role& role, int64_t incarnation,
                                 std::optional<CheckpointReference> start, int attempt) const {
  SliceRequest request;
  request.job = {"uid-1", "team", "job"};
  request.leader_epoch = 1;
  request.incarnation = incarnation;
  request.plan = MakePlan();
  request.roles = RolesOf(request.plan.aggregation, {role, attempt});
  request.training.seed = seed;
  request.training.epochs = epochs;
  request.training.training_samples = samples;
  request.training.optimizer = optimizer;
  request.training.stop_at_loss = stop_at_loss;
  request.training.evaluate_every = evaluate_every;
  request.training.early_stopping = early_stopping;
  request.training.keep_best = keep_best;
  request.training.dataset.uri = "memory:data";
  request.training.dataset.format = DatasetFormat::kIdx;
  request.store.uri = "memory:";
  request.store.prefix = kPrefix;
  request.first_iteration = start ? start->iteration : 0;
  request.start = std::move(start);
  request.budget_seconds = budget_seconds;
  request.checkpoint_keep = checkpoint_keep;
  request.invocation = MakeInvocationId(request);
  return request;
}

std::vector<Role> HarnessJob::Roles() const {
  std::vector<Role> roles;
  const AggregationPlan aggregation = MakePlan().aggregation;
  for (int rank = 0; rank < aggregation.workers(); ++rank)
    roles.push_back({RoleKind::kWorker, rank, {}});
  for (int rank = 0; rank < aggregation.server_functions(); ++rank)
    roles.push_back({RoleKind::kServer, rank, ServerAt(aggregation, rank)});
  return roles;
}

bool HarnessResult::AllAre(SliceOutcome outcome) const {
  for (const auto& [role, record] : records) {
    if (record.outcome != outcome) return false;
  }
  return !records.empty();
}

const SliceRecord& HarnessResult::Leader(const HarnessJob& job) const {
  const AggregationPlan aggregation = job.MakePlan().aggregation;
  const ServerPosition root = {aggregation.server_layers(), 0, 0};
  if (aggregation.placement == Placement::kWorkers) {
    return records.at(Role{RoleKind::kWorker, HostOf(aggregation, root), {}}.Name());
  }
  return records.at(Role{RoleKind::kServer, ServerRank(aggregation, root), root}.Name());
}

SliceHarness::SliceHarness(Runtime& runtime, ObjectStore& store, HarnessJob job)
    : runtime_(runtime), store_(store), job_(std::move(job)) {}

void SliceHarness::ConnectFunctions(const std::set<std::string>& unreachable, bool tls) {
  const std::optional<PeerSecret> key =
      tls ? std::optional<PeerSecret>(DerivePeerKeys("key").tls) : std::nullopt;
  for (const Role& role : job_.Roles()) {
    if (unreachable.contains(role.Name())) continue;
    networks_[role.Name()] = TcpNetwork::Listen(runtime_, "127.0.0.1", 0, key).value();
  }
}

SliceRequest SliceHarness::Request(const Role& role, int64_t incarnation,
                                   const std::optional<CheckpointReference>& start,
                                   int attempt) const {
  SliceRequest request = job_.Request(role, incarnation, start, attempt);
  for (const Role& other : RolesToDial(request.plan.aggregation, role)) {
    const auto found = networks_.find(other.Name());
    if (found == networks_.end()) continue;
    request.peers.push_back({other, "127.0.0.1:" + std::to_string(found->second->port())});
  }
  return request;
}

SliceEnvironment SliceHarness::Environment(const Role& role) {
  SliceEnvironment environment;
  if (const auto found = networks_.find(role.Name()); found != networks_.end()) {
    Network& network = *found->second;
    environment.peers = {network_wrapper_ ? network_wrapper_(role, network) : &network,
                         DerivePeerKeys("key").handshake};
  }
  environment.usage = CurrentProcessUsage;
  environment.open_store = [this,
                            role](const StoreReference&) -> Result<std::unique_ptr<ObjectStore>> {
    return wrapper_ ? wrapper_(role, store_) : BorrowStore(store_);
  };
  if (role.kind == RoleKind::kServer) return environment;
  environment.make_model = [this](const TrainingConfig&, const DatasetInfo&,
                                  int) -> Result<std::unique_ptr<TrainableModel>> {
    ++models_made_;
    if (job_.make_model) return job_.make_model();
    return std::unique_ptr<TrainableModel>(
        std::make_unique<ArithmeticModel>(job_.parameters, job_.nan_at_version, job_.buffers));
  };
  environment.data_requests = job_.data_requests;
  environment.open_dataset = [this](const DatasetConfig&) -> Result<std::unique_ptr<Dataset>> {
    ++datasets_opened_;
    if (job_.open_dataset) return job_.open_dataset();
    return std::unique_ptr<Dataset>(
        std::make_unique<InMemoryDataset>(job_.samples, job_.test_samples, job_.data_checksum));
  };
  return environment;
}

Status SliceHarness::Start(int64_t incarnation, const std::optional<CheckpointReference>& start,
                           int attempt) {
  services_.clear();
  invocations_.clear();
  for (const Role& role : job_.Roles()) {
    LDNN_RETURN_IF_ERROR(StartRole(role, incarnation, start, attempt));
  }
  return OkStatus();
}

Status SliceHarness::GoOn(int64_t incarnation, const CheckpointReference& start) {
  for (const Role& role : job_.Roles()) {
    const SliceRequest request = Request(role, incarnation, start);
    LDNN_RETURN_IF_ERROR(Service(role.Name()).Start(request));
    invocations_[role.Name()] = request.invocation;
  }
  return OkStatus();
}

Status SliceHarness::StartRole(const Role& role, int64_t incarnation,
                               const std::optional<CheckpointReference>& start, int attempt) {
  services_.erase(role.Name());
  const SliceRequest request = Request(role, incarnation, start, attempt);
  auto service = std::make_unique<SliceService>(runtime_, Environment(role));
  LDNN_RETURN_IF_ERROR(service->Start(request));
  invocations_[role.Name()] = request.invocation;
  services_[role.Name()] = std::move(service);
  return OkStatus();
}

HarnessResult SliceHarness::Await() {
  HarnessResult result;
  for (auto& [role, service] : services_) {
    for (int64_t index = 0;;) {
      auto text =
          service->Line(invocations_[role], index, runtime_.clock.Now() + std::chrono::seconds(10));
      LDNN_CHECK(text.ok(), text.status().ToString());
      if (!text->has_value()) continue;
      ++index;
      auto line = DecodeSliceLine(**text);
      LDNN_CHECK(line.ok() && line->has_value(), **text);
      if (auto* const record = std::get_if<SliceRecord>(&**line)) {
        result.records[role] = std::move(*record);
        break;
      }
      result.lines[role].push_back(std::get<ProgressLine>(**line));
    }
  }
  return result;
}

HarnessResult SliceHarness::Run(int64_t incarnation,
                                const std::optional<CheckpointReference>& start, int attempt) {
  const Status started = Start(incarnation, start, attempt);
  LDNN_CHECK(started.ok(), started.ToString());
  return Await();
}

SliceRecord AwaitRecord(Runtime& runtime, SliceService& service, const std::string& invocation) {
  for (int64_t index = 0;; ++index) {
    const auto line =
        service.Line(invocation, index, runtime.clock.Now() + std::chrono::seconds(20));
    LDNN_CHECK(line.ok() && line->has_value(), "no record came");
    const auto decoded = DecodeSliceLine(**line);
    LDNN_CHECK(decoded.ok() && decoded->has_value(), **line);
    if (const auto* const record = std::get_if<SliceRecord>(&**decoded)) return *record;
  }
}

std::string ModelDigest(ObjectStore& store, const std::string& name) {
  const auto bytes = store.Get(ResultKey(kPrefix, name));
  return bytes.ok() ? Hex64(Xxh3(*bytes)) : std::string("no model");
}

}  // namespace lambdadnn
