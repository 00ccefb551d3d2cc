// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/world.h"

#include <algorithm>
#include <memory>

#include "common/objectstore/retrying_object_store.h"
#include "operator/api/conditions.h"
#include "operator/api/job_codec.h"
#include "operator/controller/controller.h"
#include "operator/kube/in_memory_api_server.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/slice_requests.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/job_definition.h"
#include "tests/simulation/sim_functions.h"
#include "tests/simulation/sim_job.h"
#include "tests/simulation/sim_kube.h"
#include "tests/simulation/sim_training.h"

namespace lambdadnn::simulation {
namespace {

constexpr double kLookSeconds = 1;
// After the job's end the world is left alone for this long before it is judged.
constexpr double kSettleSeconds = 8;
// Faults end after this long: a job must get done in a world that becomes calm.
constexpr double kCalmAfterSeconds = 90;

// One controller process and what it holds. Never destroyed: it ends by kill.
struct Leader {
  Leader(SimProcess& process_in, KubeClient& server, SimPlatform& platform, FaultInjector& faults,
         SimBucket& bucket, const Scenario& scenario, int64_t epoch)
      : process(process_in),
        kube(server, faults, process, scenario.kube),
        backend(platform, process),
        slices(platform, process),
        dependencies{process.runtime(),
                     kube,
                     backend,
                     slices,
                     [this, &bucket](const StoreReference&) { return OpenStore(bucket); },
                     {},
                     nullptr,
                     nullptr,
                     [this](EventDraft draft) { recorder.Record(std::move(draft)); }},
        recorder(kube, process.runtime(), {}),
        controller(dependencies, MakeControllerOptions(scenario, epoch)) {}

  Result<std::unique_ptr<ObjectStore>> OpenStore(SimBucket& bucket) {
    return std::unique_ptr<ObjectStore>(std::make_unique<RetryingObjectStore>(
        std::make_unique<SimObjectStore>(bucket, process), process.runtime(), RetryOptions{}));
  }

  SimProcess& process;
  SimKubeClient kube;
  SimFunctionBackend backend;
  SimSliceClient slices;
  ControllerDependencies dependencies;
  EventRecorder recorder;
  Controller controller;
};

class World {
 public:
  World(uint64_t seed, const WorldOptions& options)
      : scenario_(MakeScenario(seed)),
        scheduler_(seed),
        faults_(scheduler_.random(), scenario_.rates, scenario_.appointments),
        bucket_(scheduler_, faults_, scenario_.store),
        platform_(scheduler_, faults_, scenario_.platform,
                  [this](SimFunction& function) { return MakeEnvironment(function); }),
        control_plane_(scheduler_.NewProcess("apiserver")),
        user_(scheduler_.NewProcess("user")),
        server_(control_plane_.runtime()) {
    if (options.trace) scheduler_.SetTrace(options.trace);
    server_.Define(SharedJobDefinition());
    server_.Define(EventDefinition());
    server_.Define(SecretDefinition());
    platform_.ReportViolations([this](std::string what) { Fail(std::move(what)); });
    platform_.ObserveRequests([this](const SliceRequest& request) { OnRequest(request); });
    platform_.ObserveStarts([this](const SimFunction& function, const SliceRequest& request) {
      OnStart(function, request);
    });
    bucket_.Observe([this](const StoreEffect& effect) { Observe(effect); });
  }

  WorldResult Run() {
    (void)user_.Spawn("user", [this] { UserStory(); });
    StartLeader(0);
    for (const Disturbance& disturbance : scenario_.disturbances) Schedule(disturbance);
    scheduler_.At(Instant{} + FromSeconds(kCalmAfterSeconds), [this] { faults_.Calm(); });
    RunLimits limits;
    limits.virtual_time = std::chrono::minutes(20);
    limits.events = 5'000'000;
    const Status ran = scheduler_.Run([this] { return over_ || !violation().ok(); }, limits);
    return Conclude(ran);
  }

 private:
  // --- The parts of the world ---

  SliceEnvironment MakeEnvironment(SimFunction& function) {
    SliceEnvironment environment;
    SimProcess& process = *function.process;
    environment.make_model = [this, &function, &process](const TrainingConfig&, const DatasetInfo&,
                                                         int) {
      const auto compute = [this, &function, &process](int64_t samples) {
        const double jitter = 0.9 + 0.2 * process.runtime().random.Uniform();
        const double seconds = scenario_.compute_seconds +
                               scenario_.compute_seconds_per_sample * static_cast<double>(samples);
        process.runtime().clock.SleepFor(FromSeconds(seconds * jitter * function.slow_factor));
      };
      return Result<std::unique_ptr<TrainableModel>>(
          MakeSimModel(scenario_.plan.parameters, compute));
    };
    environment.open_dataset = [this](const DatasetConfig&) {
      return Result<std::unique_ptr<Dataset>>(
          MakeSimDataset(scenario_.training.training_samples, scenario_.test_samples));
    };
    environment.open_store = [this, &function, &process](const StoreReference&) {
      // One slice opens the store once, before anything else.
      if (++function.slices_run > std::ssize(function.invocations)) {
        Fail("guarantee 2: " + process.name() + " runs a slice for the second time");
      }
      return Result<std::unique_ptr<ObjectStore>>(
          std::make_unique<SimObjectStore>(bucket_, process));
    };
    return environment;
  }

  void StartLeader(double delay_seconds) {
    scheduler_.At(scheduler_.Now() + FromSeconds(delay_seconds), [this] {
      if (over_) return;
      const int64_t epoch = ++leaders_started_;
      SimProcess& process = scheduler_.NewProcess("controller-" + std::to_string(epoch));
      process.set_role("controller");
      leading_epoch_ = epoch;
      process.OnKilled([this, epoch] {
        if (leading_epoch_ != epoch) return;
        leading_epoch_ = 0;
        leader_ = nullptr;
        StartLeader(0.2 + 2 * scheduler_.random().Uniform());
      });
      // Never destroyed, like all that a process holds.
      (void)process.Spawn("main", [this, &process, epoch] {
        auto* leader = new Leader(process, server_, platform_, faults_, bucket_, scenario_, epoch);
        leader_ = leader;
        leader->controller.Start();
      });
    });
  }

  // The plan that the controller chose is what the job must be held to.
  void OnRequest(const SliceRequest& request) {
    if (reference_ != nullptr) {
      if (request.plan.revision == plan_.revision && request.plan != plan_) {
        Fail("guarantee 1: plan revision " + std::to_string(plan_.revision) +
             " changed its content");
      }
      return;
    }
    plan_ = request.plan;
    reference_ = std::make_unique<Reference>(plan_, request.training);
    ExchangeShape shape;
    shape.aggregation = plan_.aggregation;
    shape.parameters = plan_.parameters;
    shape.clip_by_global_norm = request.training.optimizer.clip_global_norm.has_value();
    checker_ = std::make_unique<Checker>(shape, *reference_, request.store.prefix);
  }

  // A slice is one function's, for good: whoever follows a lost one works in another incarnation.
  void OnStart(const SimFunction& function, const SliceRequest& request) {
    if (request.role.kind == RoleKind::kProfile) return;
    const auto [owner, is_new] = owners_.emplace(request.invocation, function.process);
    if (owner->second != function.process) {
      return Fail("guarantee 2: " + function.process->name() + " begins " + request.invocation +
                  ", which is a slice of " + owner->second->name());
    }
    if (is_new) checker_->ObserveRound(function.scope, request.first_iteration);
  }

  // Objects of another plan revision or incarnation may be there, but are nobody's input.
  void CheckConsumed(const StoreEffect& effect) {
    const SimFunction* function = platform_.FunctionOf(effect.process);
    if (function == nullptr || !effect.key.starts_with(exchange_prefix_)) return;
    const std::string_view rest = effect.key.substr(exchange_prefix_.size());
    if (rest.substr(0, rest.find('/')) == function->scope) return;
    Fail("guarantee 2: " + function->process->name() + ", which runs " + function->scope +
         ", took " + std::string(effect.key));
  }

  void Observe(const StoreEffect& effect) {
    if (checker_ != nullptr) checker_->Observe(effect);
    if (effect.operation == "put") writers_[std::string(effect.key)] = effect.process->name();
    if (effect.operation == "get") CheckConsumed(effect);
  }

  // --- Faults that belong to no call ---

  void Schedule(const Disturbance& disturbance) {
    scheduler_.At(Instant{} + FromSeconds(disturbance.at_seconds), [this, disturbance] {
      if (!over_ && !faults_.calm()) Disturb(disturbance);
    });
  }

  void Disturb(const Disturbance& disturbance) {
    const std::vector<SimFunction*> ready = platform_.Ready();
    SimFunction* function = ready.empty() ? nullptr : ready[disturbance.choice % ready.size()];
    switch (disturbance.kind) {
      case DisturbanceKind::kKillFunction:
        if (function == nullptr) return;
        faults_.ledger().CountEvent("function killed");
        platform_.Kill(*function, "Killed");
        break;
      case DisturbanceKind::kCutOffFunction:
        if (function == nullptr) return;
        faults_.ledger().CountEvent("function cut off from the operator");
        zombies_.insert(function->process->name());
        platform_.CutOff(*function, FromSeconds(disturbance.seconds));
        break;
      case DisturbanceKind::kSlowFunction:
        if (function == nullptr) return;
        faults_.ledger().CountEvent("function slow");
        function->slow_factor = 3;
        scheduler_.At(scheduler_.Now() + FromSeconds(disturbance.seconds),
                      [function] { function->slow_factor = 1; });
        break;
      case DisturbanceKind::kCutStream:
        if (leader_ == nullptr || !leader_->slices.CutSomeStream(scheduler_.random())) return;
        faults_.ledger().CountEvent("stream cut");
        break;
      case DisturbanceKind::kKillController:
        if (leader_ == nullptr) return;
        faults_.ledger().CountEvent("controller killed");
        leader_->process.Kill();
        break;
      case DisturbanceKind::kSecondLeader:
        TakeOver(disturbance.seconds);
        break;
      case DisturbanceKind::kSuspend:
        faults_.ledger().CountEvent("suspended");
        suspend_ = true;
        scheduler_.At(scheduler_.Now() + FromSeconds(disturbance.seconds),
                      [this] { suspend_ = false; });
        break;
    }
  }

  // A second leader begins while the first, which has not noticed, goes on for a while.
  void TakeOver(double seconds) {
    if (leader_ == nullptr) return;
    faults_.ledger().CountEvent("second leader");
    SimProcess& old = leader_->process;
    leader_ = nullptr;
    leading_epoch_ = 0;
    StartLeader(0);
    ++deposed_alive_;
    scheduler_.At(scheduler_.Now() + FromSeconds(seconds), [this, &old] {
      old.Kill();
      --deposed_alive_;
    });
  }

  // --- The user ---

  Json ReadJob() {
    const Result<Json> job = server_.Get(ServerlessTrainingJobType(), {"default", "job"});
    return job.ok() ? *job : Json();
  }

  void ApplySuspend() {
    if (suspend_ == suspend_applied_) return;
    const Json patch = {{"spec", {{"suspend", suspend_}}}};
    if (server_.Patch(ServerlessTrainingJobType(), {"default", "job"}, patch, Subresource::kNone)
            .ok()) {
      suspend_applied_ = suspend_;
    }
  }

  void UserStory() {
    Clock& clock = user_.runtime().clock;
    Result<Json> created =
        server_.Create(ServerlessTrainingJobType(), EncodeJob(MakeJob(scenario_)));
    if (!created.ok()) return Fail("the job is refused: " + created.status().ToString());
    job_ = *DecodeJob(*created);
    prefix_ = JobPrefix(job_);
    exchange_prefix_ = prefix_ + "/x/";
    while (true) {
      clock.SleepFor(FromSeconds(kLookSeconds));
      if (scheduler_.Now() > Instant{} + FromSeconds(kCalmAfterSeconds)) suspend_ = false;
      ApplySuspend();
      const Json json = ReadJob();
      if (json.is_null()) return Fail("guarantee 6: the job is gone although nobody deleted it");
      if (MetadataText(json, "resourceVersion") != job_.metadata.resource_version) {
        const Result<Job> job = DecodeJob(json);
        if (!job.ok()) return Fail("the job's object cannot be read: " + job.status().ToString());
        CheckProgress(*job);
        job_ = *job;
      }
      if (scenario_.delete_at_seconds > 0 &&
          scheduler_.Now() > Instant{} + FromSeconds(scenario_.delete_at_seconds)) {
        faults_.ledger().CountEvent("job deleted while it ran");
        DeleteJob();
        over_ = true;
        return;
      }
      if (IsConditionTrue(job_.status.conditions, "Complete")) break;
      if (IsConditionTrue(job_.status.conditions, "Failed")) {
        const Condition* failed = FindCondition(job_.status.conditions, "Failed");
        return Fail("the job failed: " + failed->reason + ": " + failed->message);
      }
    }
    faults_.Calm();
    // A deposed leader that still runs may do anything up to its death, but not for good.
    while (deposed_alive_ > 0) clock.SleepFor(FromSeconds(kLookSeconds));
    clock.SleepFor(FromSeconds(kSettleSeconds));
    CheckEnd();
    DeleteJob();
    over_ = true;
  }

  // What may never go back, whoever leads.
  void CheckProgress(const Job& job) {
    const ExecutionStatus& was = job_.status.execution;
    const ExecutionStatus& is = job.status.execution;
    if (is.incarnation < was.incarnation) Fail("guarantee 7: the incarnation went back");
    if (job_.status.plan.has_value() && job.status.plan.has_value() &&
        job.status.plan->revision < job_.status.plan->revision) {
      Fail("guarantee 7: the plan's revision went back");
    }
  }

  void CheckEnd() {
    if (platform_.Live() > 0) {
      Fail("guarantee 6: " + std::to_string(platform_.Live()) +
           " functions are left after the job's end");
    }
    CheckLeftovers("the job's end");
    if (checker_ == nullptr) return Fail("the job is complete without a slice");
    checker_->CheckCounts();
    const std::string& expected = reference_->digest();
    if (job_.status.model_digest != expected) {
      Fail("guarantee 1: the model's digest is " + job_.status.model_digest +
           ", of an undisturbed run " + expected);
    }
  }

  void CheckLeftovers(const std::string& when) {
    for (const auto& [key, bytes] : bucket_.objects()) {
      if (!key.starts_with(prefix_ + "/") || key.starts_with(prefix_ + "/results/")) continue;
      const std::string& writer = writers_[key];
      // What a cut-off function writes after the clean-up, nobody can take away.
      if (zombies_.contains(writer)) continue;
      return Fail("guarantee 5: " + key + " by " + writer + " is left after " + when);
    }
  }

  void DeleteJob() {
    Clock& clock = user_.runtime().clock;
    const Instant give_up = clock.Now() + FromSeconds(120);
    (void)server_.Delete(ServerlessTrainingJobType(), {"default", "job"}, "");
    while (!ReadJob().is_null()) {
      if (clock.Now() > give_up) {
        return Fail("guarantee 6: the job's finalizer does not end within two minutes");
      }
      clock.SleepFor(FromSeconds(kLookSeconds));
    }
    while (deposed_alive_ > 0) clock.SleepFor(FromSeconds(kLookSeconds));
    clock.SleepFor(FromSeconds(kSettleSeconds));
    if (platform_.Live() > 0) Fail("guarantee 6: functions are left after the job's deletion");
    CheckLeftovers("the job's deletion");
  }

  // --- The end ---

  void Fail(std::string what) {
    if (violation_.ok()) violation_ = InternalError(std::move(what));
    over_ = true;
  }
  Status violation() const {
    if (!violation_.ok() || checker_ == nullptr) return violation_;
    return checker_->violation();
  }

  WorldResult Conclude(const Status& ran) {
    WorldResult result;
    result.status = violation().ok() ? ran : violation();
    result.scenario = scenario_.Brief();
    result.faults = faults_.ledger();
    result.virtual_seconds = ToSeconds(scheduler_.Now() - Instant{});
    result.events = scheduler_.events_run();
    result.store_requests = bucket_.requests();
    result.slices = job_.status.usage.slices;
    result.incarnations = job_.status.execution.incarnation + 1;
    result.iterations = plan_.iterations;
    result.checkpoints = checker_ == nullptr ? 0 : checker_->checkpoints();
    result.controllers = leaders_started_;
    result.model_digest = job_.status.model_digest;
    return result;
  }

  Scenario scenario_;
  SimScheduler scheduler_;
  FaultInjector faults_;
  SimBucket bucket_;
  SimPlatform platform_;
  SimProcess& control_plane_;
  SimProcess& user_;
  InMemoryApiServer server_;
  Plan plan_;
  std::unique_ptr<Reference> reference_;
  std::unique_ptr<Checker> checker_;
  Leader* leader_ = nullptr;
  int64_t leaders_started_ = 0;
  int64_t leading_epoch_ = 0;
  int deposed_alive_ = 0;
  bool suspend_ = false;
  bool suspend_applied_ = false;
  bool over_ = false;
  Status violation_;
  Job job_;
  std::string prefix_;
  std::set<std::string> zombies_;
  std::string exchange_prefix_;
  std::map<std::string, const SimProcess*> owners_;  // by invocation
  KeyMap<std::string> writers_;                      // key -> last writer
};

}  // namespace

WorldResult RunWorld(uint64_t seed, const WorldOptions& options) {
  return World(seed, options).Run();
}

}  // namespace lambdadnn::simulation
