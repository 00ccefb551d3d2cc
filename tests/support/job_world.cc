// SPDX-License-Identifier: Apache-2.0
#include "tests/support/job_world.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/json/dump_json.h"
#include "operator/api/job_codec.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"
#include "tests/support/faulty_object_store.h"

namespace lambdadnn {
namespace {

// "NAME", or "NAMESPACE/NAME".
ObjectName Named(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return {"default", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

bool IsWrite(const std::string& call) {
  return call == "create" || call == "patch" || call == "patchStatus" || call == "delete" ||
         call == "update" || call == "updateStatus";
}

}  // namespace

class JobWorld::Observer final : public ControllerObserver {
 public:
  explicit Observer(std::vector<Json>* events) : events_(events) {}
  void OnEvent(const Json& event) override { events_->push_back(event); }

 private:
  std::vector<Json>* events_;
};

JobWorld::JobWorld(FakeFunctionsOptions fake)
    : server(time.runtime),
      functions(time.clock, memory_store, std::move(fake)),
      kube_(server,
            [this](const std::string& call, const std::string&, FaultyKubeClient::Point point) {
              if (!IsWrite(call)) return OkStatus();
              return Effect(call, point == FaultyKubeClient::Point::kAfter);
            }) {
  server.Define(JobDefinition());
  ResourceDefinition secrets;
  secrets.type = SecretType();
  server.Define(secrets);
  server.Define(EventDefinition());
  functions.script = [this](const std::string& call, bool done) { return Effect(call, done); };
  observer_ = std::make_unique<Observer>(&events);

  options.progress_seconds = 1;
  Platform& platform = options.platform;
  platform.memory = {256, 1024, 64};
  platform.milli_cpu_per_gib = 1000;
  platform.total_milli_cpu = 4000;
  platform.max_functions = 8;
  platform.function_timeout_seconds = 600;
  platform.store_bytes_per_second = 1e9;
  platform.store_request_seconds = 0.001;
  platform.function_store_intercept = 1e9;
  platform.function_network_bytes_per_second = 1e9;
  platform.parameter_server_network_bytes_per_second = 1e9;
  platform.prices.gib_second = 1.66667e-5;
  RestartController();
}

Json JobWorld::MinimalJob() {
  return Json::parse(R"({
    "apiVersion": "lambdadnn.io/v1alpha1", "kind": "ServerlessTrainingJob",
    "metadata": {"name": "digits", "namespace": "default"},
    "spec": {
      "model": {"builtin": {"name": "logistic"}},
      "dataset": {"uri": "file:///data", "format": "IDX", "classes": 10},
      "training": {"epochs": 2, "globalBatchSize": 64, "seed": 7,
                   "optimizer": {"name": "SGD", "learningRate": "0.1"}},
      "objective": {"fixed": {"functions": 2, "memory": "512Mi"}},
      "profile": {"trainingSamples": 3200, "trainingBytes": 100000, "modelBytes": 4000,
                  "trainingRate": {"slope": "1", "intercept": "0"}},
      "aggregation": {"transport": "ObjectStore", "placement": "Dedicated", "shards": 1, "layers": [1, 2]},
      "objectStore": {"uri": "file:///store"},
      "backend": "Local"
    }})");
}

void JobWorld::RestartController() {
  functions.ForgetStreams();
  cache_ = std::make_unique<ObjectCache>(ObjectCache::Storage::kText);
  synced_.clear();
  ControllerDependencies dependencies{
      .runtime = time.runtime,
      .kube = kube_,
      .backend = functions,
      .slices = functions,
      .open_store = [this](const StoreReference& reference,
                           const StoreSecrets& secrets) -> Result<std::unique_ptr<ObjectStore>> {
        opened.push_back(reference.uri);
        store_secrets = secrets;
        auto lent = std::make_unique<FaultyObjectStore>(memory_store, time.runtime, StoreFaults{});
        // Each call needs the right key; each write is an effect.
        lent->SetScript(
            [this, key = secrets.credentials.access_key.empty() ? operator_key
                                                                : secrets.credentials.access_key](
                StoreOperation operation, std::string_view object, bool done) -> Status {
              if (!store_key.empty() && key != store_key) {
                return UnauthenticatedError("the access key is unknown");
              }
              if (store_rule) LDNN_RETURN_IF_ERROR(store_rule(key, object));
              const bool writes =
                  operation == StoreOperation::kPut || operation == StoreOperation::kDelete;
              return writes ? Effect("store", done) : OkStatus();
            });
        return std::unique_ptr<ObjectStore>(std::move(lent));
      },
      .store_environment = {{"LAMBDADNN_S3_ACCESS_KEY_ID", "the operator's"},
                            {"LAMBDADNN_S3_CA_FILE", "/its/ca"}},
      .own_credentials = [this] { return StoreCredentials{operator_key, operator_key, ""}; },
      .measurements = measurements,
      .check_dataset = check_dataset,
      .check_module = check_module,
      .observer = observer_.get(),
      .record_event = [this](EventDraft draft) { told.push_back(std::move(draft)); },
      .export_spans =
          [this](std::vector<Span> ended) {
            std::move(ended.begin(), ended.end(), std::back_inserter(spans));
          },
      .leads_now = leads_now,
      .assume_role = assume_role,
      .make_certificate = make_certificate,
      .cluster = &functions};
  due_.clear();
  reconciler_ = std::make_unique<Reconciler>(
      dependencies, options, *cache_,
      [this](const ObjectName& name) { due_[name] = time.clock.Now(); });
}

void JobWorld::Create(const Json& job) {
  const auto created = server.Create(ServerlessTrainingJobType(), job);
  LDNN_CHECK(created.ok(), created.status().ToString());
}

void JobWorld::Patch(const Json& merge_patch, const std::string& name) {
  const auto patched =
      server.Patch(ServerlessTrainingJobType(), Named(name), merge_patch, Subresource::kNone);
  LDNN_CHECK(patched.ok(), patched.status().ToString());
  due_.erase(Named(name));
}

void JobWorld::Delete(const std::string& name) {
  const Status deleted = server.Delete(ServerlessTrainingJobType(), Named(name), "");
  LDNN_CHECK(deleted.ok(), deleted.ToString());
  due_.erase(Named(name));
}

void JobWorld::Sync() {
  std::set<ObjectName> there;
  for (const auto& object : server.PeekAll(ServerlessTrainingJobType())) {
    const ObjectName name = NameOf(*object);
    there.insert(name);
    std::shared_ptr<const Json>& synced = synced_[name];
    if (synced != object) cache_->Put(*object);
    synced = object;
    due_.try_emplace(name, time.clock.Now());
  }
  for (const ObjectName& name : cache_->Names()) {
    if (there.contains(name)) continue;
    cache_->Remove(name, UidOf(*cache_->Get(name)));
    synced_.erase(name);
    due_[name] = time.clock.Now();
  }
}

Duration JobWorld::Pass(const ObjectName& name) {
  Duration next = FromSeconds(options.tick_seconds);
  try {
    in_controller_ = true;
    const Result<Duration> delay = reconciler_->Reconcile(name, nullptr);
    in_controller_ = false;
    if (delay.ok()) next = std::min(*delay, FromSeconds(most_seconds_between_passes));
  } catch (const ProcessDied&) {
    in_controller_ = false;
    RestartController();
  }
  return next;
}

bool JobWorld::RunUntil(const std::function<bool()>& done, double seconds) {
  const Instant end = time.clock.Now() + FromSeconds(seconds);
  while (time.clock.Now() < end) {
    Sync();
    const std::map<ObjectName, Instant> due = due_;
    for (const auto& [name, when] : due) {
      if (when > time.clock.Now()) continue;
      due_[name] = Instant::max();  // unless the pass wakes it
      const Instant next = time.clock.Now() + Pass(name);
      due_[name] = std::min(due_[name], next);
      Sync();
      if (!cache_->Contains(name)) due_.erase(name);
    }
    if (done()) return true;
    Instant next = end;
    for (const auto& [name, when] : due_) next = std::min(next, when);
    time.clock.SleepFor(due_.empty() ? FromSeconds(1) : next - time.clock.Now());
  }
  return done();
}

bool JobWorld::RunUntilFinished(double seconds) {
  return RunUntil([this] { return Exists() && IsFinished(Read()); }, seconds);
}

Job JobWorld::Read(const std::string& name) {
  const auto object = server.Peek(ServerlessTrainingJobType(), Named(name));
  LDNN_CHECK(object != nullptr, "there is no job " + name);
  ReadJob& read = read_[name];
  if (read.object != object) {
    std::vector<FieldError> errors;
    read = {object, DecodeJob(*object, &errors)};
    LDNN_CHECK(errors.empty(), ToStatus(errors).ToString());
  }
  return read.job;
}

std::string JobWorld::Described(const std::string& name) {
  return DumpJson(*reconciler_->Describe(Named(name)));
}

bool JobWorld::Exists(const std::string& name) {
  return server.Peek(ServerlessTrainingJobType(), Named(name)) != nullptr;
}

std::vector<std::string> JobWorld::Keys() {
  std::vector<std::string> keys;
  const auto objects = ListAll(memory_store, "");
  LDNN_CHECK(objects.ok(), objects.status().ToString());
  for (const ObjectInfo& object : *objects) keys.push_back(object.key);
  return keys;
}

std::string JobWorld::Reason(const std::string& condition, const std::string& name) {
  const Job job = Read(name);
  const Condition* found = FindCondition(job, condition);
  return found == nullptr ? "" : found->status + "/" + found->reason;
}

void JobWorld::Inject(int64_t index, EffectFault kind) {
  fault_index_ = index;
  fault_kind_ = kind;
}

Status JobWorld::Effect(const std::string& what, bool done) {
  if (!in_controller_) return OkStatus();
  const int64_t index = done ? effects_ - 1 : effects_++;
  if (index != fault_index_ || fault_happened_) return OkStatus();
  const bool before =
      fault_kind_ == EffectFault::kFailBefore || fault_kind_ == EffectFault::kDieBefore;
  if (before == done || fault_kind_ == EffectFault::kNone) return OkStatus();
  fault_happened_ = true;
  if (fault_kind_ == EffectFault::kDieBefore || fault_kind_ == EffectFault::kDieAfter) {
    throw ProcessDied{};
  }
  return UnavailableError("injected fault at " + what);
}

}  // namespace lambdadnn
