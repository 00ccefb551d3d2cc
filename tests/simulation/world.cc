// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/world.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "common/base/bytes.h"
#include "common/base/random.h"
#include "common/json/dump_json.h"
#include "operator/api/conditions.h"
#include "operator/api/job_codec.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/in_memory_api_server.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/slice_requests.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/job_definition.h"
#include "tests/simulation/operators.h"
#include "tests/simulation/sim_functions.h"
#include "tests/simulation/sim_job.h"
#include "tests/simulation/sim_peer_network.h"
#include "tests/simulation/sim_training.h"
#include "tests/simulation/store_host.h"

namespace lambdadnn::simulation {
namespace {

constexpr double kLookSeconds = 1;
// After the job's end the world is left alone for this long before it is judged.
constexpr double kSettleSeconds = 8;
// Faults end after this long: a job must get done in a world that becomes calm.
constexpr double kCalmAfterSeconds = 90;
constexpr double kSlowZombieSeconds = 12;

class World {
 public:
  World(uint64_t seed, const WorldOptions& options)
      : scenario_(MakeScenario(seed)),
        scheduler_(seed),
        faults_(scheduler_.random(), scenario_.rates, scenario_.appointments),
        peers_(scheduler_, faults_, seed),
        host_(seed),
        bucket_(scheduler_, faults_, scenario_.store,
                scenario_.store_is_files ? &host_.store() : nullptr),
        platform_(scheduler_, faults_, scenario_.platform,
                  [this](SimFunction& function) { return MakeEnvironment(function); }),
        control_plane_(scheduler_.NewProcess("apiserver")),
        user_(scheduler_.NewProcess("user")),
        server_(control_plane_.runtime()) {
    if (options.trace) scheduler_.SetTrace(options.trace);
    server_.Define(SharedJobDefinition());
    server_.Define(EventDefinition());
    server_.Define(SecretDefinition());
    platform_.ReportViolations(
        [this](Invariant invariant, std::string what) { Fail(invariant, std::move(what)); });
    platform_.ObserveRequests([this](const SliceRequest& request) { OnRequest(request); });
    platform_.ObserveStarts([this](const SimFunction& function, const SliceRequest& request) {
      OnStart(function, request);
    });
    platform_.MeasureWith(
        [this](const SliceRequest& request) { return MakeProfileRecord(scenario_, request); });
    bucket_.Observe([this](const StoreEffect& effect) { Observe(effect); });
  }

  WorldResult Run() {
    (void)user_.Spawn("user", [this] { UserStory(); });
    operators_.Start();
    for (const Disturbance& disturbance : scenario_.disturbances) Schedule(disturbance);
    for (const PowerCut& cut : scenario_.power_cuts) Schedule(cut);
    scheduler_.At(Instant{} + FromSeconds(kCalmAfterSeconds), [this] { Calm(); });
    RunLimits limits;
    limits.virtual_time = std::chrono::minutes(20);
    limits.events = 5'000'000;
    const Status ran = scheduler_.Run([this] { return over_ || violation().has_value(); }, limits);
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
          MakeSimModel(scenario_.plan.parameters, scenario_.plan.buffers, compute));
    };
    environment.open_dataset = [this](const DatasetConfig&) {
      return Result<std::unique_ptr<Dataset>>(
          MakeSimDataset(scenario_.training.training_samples, scenario_.test_samples));
    };
    environment.open_store = [this, &function, &process](const StoreReference&) {
      // One slice opens the store once, before anything else.
      if (++function.slices_run > std::ssize(function.invocations)) {
        Fail(Invariant::kSliceRunsOnce,
             "guarantee 2: " + process.name() + " runs a slice for the second time");
      }
      return Result<std::unique_ptr<ObjectStore>>(
          std::make_unique<SimObjectStore>(bucket_, process));
    };
    if (scenario_.platform.peers) {
      environment.peers = {&peers_.NetworkOf(process), DerivePeerKeys("key").handshake};
    }
    return environment;
  }

  static std::string ScopeName(int plan_revision, int64_t incarnation) {
    return "r" + std::to_string(plan_revision) + ".i" + std::to_string(incarnation);
  }

  // The plans that the controller chose are what the job must be held to.
  void OnRequest(const SliceRequest& request) {
    if (request.role().kind == RoleKind::kProfile) return;
    if (checker_ == nullptr) checker_ = std::make_unique<Checker>(request.store.prefix);
    const auto [plan, new_plan] = plans_.emplace(request.plan.revision, request.plan);
    // How often checkpoints are written is a round's, and no part of the bits.
    plan->second.checkpoint_every = request.plan.checkpoint_every;
    if (plan->second != request.plan) {
      return Fail(Invariant::kPlanFixed, "guarantee 1: plan revision " +
                                             std::to_string(request.plan.revision) +
                                             " changed its content");
    }
    training_ = request.training;
    const Reference* before = nullptr;
    if (request.start.has_value()) {
      before = courses_[ScopeName(request.start->plan_revision, request.start->incarnation)];
      if (before == nullptr) {
        return Fail(Invariant::kKnownStart,
                    "guarantee 2: " + request.invocation + " starts from a checkpoint of nobody");
      }
    }
    const Reference* course =
        references_.Continue(before, request.first_iteration, request.plan, request.training);
    const std::string scope = ScopeName(request.plan.revision, request.incarnation);
    const auto [known, is_new] = courses_.emplace(scope, course);
    if (known->second != course && known->second != nullptr) {
      return Fail(Invariant::kCourse, "guarantee 1: " + request.invocation +
                                          " goes on from other weights than " + scope + " has");
    }
    if (!is_new && known->second != nullptr) return;
    known->second = course;
    ExchangeShape shape;
    shape.aggregation = request.plan.aggregation;
    shape.parameters = request.plan.parameters;
    shape.block_elements = request.plan.block_elements;
    shape.clip_by_global_norm = request.training.optimizer.clip_global_norm.has_value();
    checker_->Begin(scope, shape, *course);
  }

  // A slice is one function's, for good: whoever follows a lost one works in another incarnation.
  void OnStart(const SimFunction& function, const SliceRequest& request) {
    if (request.role().kind == RoleKind::kProfile) return;
    const auto [owner, is_new] = owners_.emplace(request.invocation, function.process);
    if (owner->second != function.process) {
      return Fail(Invariant::kSliceOfOne, "guarantee 2: " + function.process->name() + " begins " +
                                              request.invocation + ", which is a slice of " +
                                              owner->second->name());
    }
    if (!is_new) return;
    checker_->ObserveSlice(function.process);
    checker_->ObserveRound(function.scope, request.first_iteration);
  }

  // Objects of another plan revision or incarnation may be there, but are nobody's input.
  void CheckConsumed(const StoreEffect& effect) {
    const SimFunction* function = platform_.FunctionOf(effect.process);
    if (function == nullptr || !effect.key.starts_with(exchange_prefix_)) return;
    const std::string_view rest = effect.key.substr(exchange_prefix_.size());
    if (rest.substr(0, rest.find('/')) == function->scope) return;
    Fail(Invariant::kOwnScope, "guarantee 2: " + function->process->name() + ", which runs " +
                                   function->scope + ", took " + std::string(effect.key));
  }

  void Observe(const StoreEffect& effect) {
    if (scenario_.store_is_files) {
      const bool once_more = effect.operation == "delete" && host_.CameBack(effect.key);
      host_.Observe(effect);
      if (once_more || effect.operation == "cut") return;
    }
    // On a disk that loses power, what is there is not what was seen to be written.
    if (effect.operation == "delete" && checker_ != nullptr && !scenario_.store_is_files &&
        platform_.FunctionOf(effect.process) != nullptr) {
      checker_->ObserveDeletion(effect);
    }
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

  void Calm() {
    faults_.Calm();
    operators_.Calm();
    host_.disk().CutPowerAt(0, nullptr);
  }

  void Schedule(const PowerCut& cut) {
    scheduler_.At(Instant{} + FromSeconds(cut.at_seconds), [this, cut] {
      if (over_ || faults_.calm()) return;
      if (cut.changes == 0) return CutPower();
      // In the middle of a write: what it belongs to has to end first.
      host_.disk().CutPowerAt(cut.changes,
                              [this] { scheduler_.At(scheduler_.Now(), [this] { CutPower(); }); });
    });
  }

  void CutPower() {
    faults_.ledger().CountEvent("power cut");
    scheduler_.Trace("the power fails");
    operators_.KillAll();
    platform_.KillAll("PowerCut");
    bucket_.DropRequests();
    for (std::string& spoiled : host_.CutPower()) {
      Fail(Invariant::kDurable, std::move(spoiled));
    }
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
      case DisturbanceKind::kCutOffAll:
        if (ready.empty()) return;
        faults_.ledger().CountEvent("all functions cut off from the operator");
        for (SimFunction* one : ready) {
          zombies_.insert(one->process->name());
          platform_.CutOff(*one, FromSeconds(disturbance.seconds));
          // The long-lived are slow, so that they are still at work when others have taken over.
          if (disturbance.seconds > kSlowZombieSeconds) one->slow_factor = 8;
        }
        break;
      case DisturbanceKind::kSlowFunction:
        if (function == nullptr) return;
        faults_.ledger().CountEvent("function slow");
        function->slow_factor = 3;
        scheduler_.At(scheduler_.Now() + FromSeconds(disturbance.seconds),
                      [function] { function->slow_factor = 1; });
        break;
      case DisturbanceKind::kCutStream:
        if (Leader* leader = operators_.leader();
            leader == nullptr || !leader->slices.CutSomeStream(scheduler_.random())) {
          return;
        }
        faults_.ledger().CountEvent("stream cut");
        break;
      case DisturbanceKind::kSuspend:
        faults_.ledger().CountEvent("suspended");
        suspend_ = true;
        scheduler_.At(scheduler_.Now() + FromSeconds(disturbance.seconds),
                      [this] { suspend_ = false; });
        break;
      default:
        operators_.Disturb(disturbance);
        break;
    }
  }

  // --- The user ---

  // Null when there is none.
  std::shared_ptr<const Json> ReadJob() {
    return server_.Peek(ServerlessTrainingJobType(), {"default", "job"});
  }

  // What `kubectl patch` does; false = the server refuses or conflicts, try again.
  bool PatchSpec(const Json& spec) {
    return server_
        .Patch(ServerlessTrainingJobType(), {"default", "job"}, {{"spec", spec}},
               Subresource::kNone)
        .ok();
  }

  // A change of plan is the objective alone, or suspend, everything else, resume.
  void ApplyPlanChange() {
    if (next_change_ >= scenario_.plan_changes.size()) return;
    const PlanChange& change = scenario_.plan_changes[next_change_];
    const Instant now = scheduler_.Now();
    if (now < Instant{} + FromSeconds(change.at_seconds)) return;
    const Json fixed = {{"functions", change.functions()},
                        {"memory", std::to_string(scenario_.plan.memory_mib) + "Mi"}};
    Json spec = {{"objective", {{"fixed", fixed}}}};
    if (change.while_suspended) {
      // From here to resuming it is this change that holds the job, whatever else suspends it.
      if (!changing_since_.has_value()) {
        if (PatchSpec({{"suspend", true}})) changing_since_ = now;
        return;
      }
      if (now < *changing_since_ + FromSeconds(change.suspended_seconds)) return;
      const AggregationPlan& aggregation = change.aggregation;
      spec["aggregation"] = {{"layers", aggregation.layers},
                             {"shards", aggregation.shards},
                             {"spread", aggregation.spread}};
      spec["suspend"] = suspend_;
      suspend_applied_ = suspend_;
    }
    if (!PatchSpec(spec))
      return Fail(Invariant::kJobSucceeds,
                  "the API server refuses a change of plan: " + DumpJson(spec));
    faults_.ledger().CountEvent("plan changed");
    changing_since_.reset();
    ++next_change_;
  }

  void ApplySuspend() {
    if (changing_since_.has_value()) return;
    if (suspend_ == suspend_applied_) return;
    const Json patch = {{"spec", {{"suspend", suspend_}}}};
    if (server_.Patch(ServerlessTrainingJobType(), {"default", "job"}, patch, Subresource::kNone)
            .ok()) {
      suspend_applied_ = suspend_;
    }
  }

  void Wait(double seconds) {
    for (; seconds > 0; seconds -= kLookSeconds) {
      user_.runtime().clock.SleepFor(FromSeconds(std::min(seconds, kLookSeconds)));
      operators_.Check();
    }
  }

  void UserStory() {
    Result<Json> created =
        server_.Create(ServerlessTrainingJobType(), EncodeJob(MakeJob(scenario_)));
    if (!created.ok())
      return Fail(Invariant::kJobSucceeds, "the job is refused: " + created.status().ToString());
    job_ = *DecodeJob(*created);
    prefix_ = JobPrefix(job_);
    exchange_prefix_ = prefix_ + "/x/";
    while (true) {
      Wait(kLookSeconds);
      if (scheduler_.Now() > Instant{} + FromSeconds(kCalmAfterSeconds)) suspend_ = false;
      ApplySuspend();
      ApplyPlanChange();
      const std::shared_ptr<const Json> json = ReadJob();
      if (json == nullptr)
        return Fail(Invariant::kJobSucceeds,
                    "guarantee 6: the job is gone although nobody deleted it");
      if (MetadataText(*json, "resourceVersion") != job_.metadata.resource_version) {
        std::vector<FieldError> errors;
        Job job = DecodeJob(*json, job_, &errors);
        if (!errors.empty())
          return Fail(Invariant::kJobSucceeds,
                      "the job cannot be read: " + ToStatus(errors).ToString());
        CheckProgress(job);
        TraceConditions(job);
        job_ = std::move(job);
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
        return Fail(Invariant::kJobSucceeds,
                    "the job failed: " + failed->reason + ": " + failed->message);
      }
    }
    Calm();
    // A deposed leader that still runs may do anything up to its death, but not for good.
    while (!operators_.settled()) Wait(kLookSeconds);
    Wait(kSettleSeconds);
    CheckEnd();
    // Who is elected then ends what the finalizer holds.
    if (scenario_.replicas > 0) operators_.KillLeader();
    DeleteJob();
    over_ = true;
  }

  void TraceConditions(const Job& job) {
    for (const Condition& condition : job.status.conditions) {
      const Condition* was = FindCondition(job_.status.conditions, condition.type);
      if (was != nullptr && was->status == condition.status && was->message == condition.message) {
        continue;
      }
      scheduler_.Trace("status: " + condition.type + " " + condition.status + " " +
                       condition.reason + ": " + condition.message);
    }
  }

  // What may never go back, whoever leads.
  void CheckProgress(const Job& job) {
    const ExecutionStatus& was = job_.status.execution;
    const ExecutionStatus& is = job.status.execution;
    if (is.incarnation < was.incarnation)
      Fail(Invariant::kStatusGoesOn, "guarantee 7: the incarnation went back");
    if (job_.status.plan.has_value() && job.status.plan.has_value() &&
        job.status.plan->revision < job_.status.plan->revision) {
      Fail(Invariant::kStatusGoesOn, "guarantee 7: the plan's revision went back");
    }
  }

  void CheckEnd() {
    if (platform_.Live() > 0) {
      Fail(Invariant::kNoFunctionLeft, "guarantee 6: " + std::to_string(platform_.Live()) +
                                           " functions are left after the job's end");
    }
    CheckLeftovers("the job's end");
    if (checker_ == nullptr)
      return Fail(Invariant::kModelDigest, "the job is complete without a slice");
    checker_->CheckCounts();
    CheckDigest();
  }

  // The log of plans in status, replayed without a disturbance.
  void CheckDigest() {
    const Reference* course = nullptr;
    for (const PlanRecord& record : job_.status.plan_history) {
      const auto plan = plans_.find(record.revision);
      // One that was replaced before any slice of it began.
      if (plan == plans_.end()) continue;
      course = references_.Continue(course, record.first_iteration, plan->second, training_);
    }
    if (course == nullptr)
      return Fail(Invariant::kModelDigest, "guarantee 1: status has no log of its plans");
    if (job_.status.model_digest != course->digest()) {
      Fail(Invariant::kModelDigest,
           "guarantee 1: the model's digest is " + job_.status.model_digest +
               ", of an undisturbed run under the same plans " + course->digest());
    }
    if (!training_.keep_best) return;
    const auto& best = job_.status.best_model;
    const bool written = bucket_.objects().contains(prefix_ + "/results/model-best.safetensors");
    if (!best || best->iteration != course->best_version() || !written) {
      Fail(Invariant::kModelDigest, "guarantee 1: the best model is of iteration " +
                                        (best ? std::to_string(best->iteration) : "none") +
                                        ", not of " + std::to_string(course->best_version()));
    }
  }

  void CheckLeftovers(const std::string& when) {
    for (const auto& [key, bytes] : bucket_.objects()) {
      if (!key.starts_with(prefix_ + "/") || key.starts_with(prefix_ + "/results/")) continue;
      const std::string& writer = writers_[key];
      // What a cut-off function writes after the clean-up, nobody can take away.
      if (zombies_.contains(writer)) continue;
      // Deleted, but not for good.
      if (host_.CameBack(key)) continue;
      return Fail(Invariant::kNoObjectLeft,
                  "guarantee 5: " + key + " by " + writer + " is left after " + when);
    }
  }

  void DeleteJob() {
    Clock& clock = user_.runtime().clock;
    const Instant give_up = clock.Now() + FromSeconds(120);
    (void)server_.Delete(ServerlessTrainingJobType(), {"default", "job"}, "");
    while (ReadJob() != nullptr) {
      if (clock.Now() > give_up) {
        return Fail(Invariant::kFinalizerEnds,
                    "guarantee 6: the job's finalizer does not end within two minutes");
      }
      Wait(kLookSeconds);
    }
    while (!operators_.settled()) Wait(kLookSeconds);
    Wait(kSettleSeconds);
    if (platform_.Live() > 0)
      Fail(Invariant::kNoFunctionLeft, "guarantee 6: functions are left after the job's deletion");
    CheckLeftovers("the job's deletion");
    const Result<KubeList> secrets = server_.List(SecretType(), "", "", 0, "");
    if (secrets.ok() && !secrets->items.empty()) {
      Fail(Invariant::kNoSecretLeft,
           "guarantee 6: " + MetadataText(secrets->items.front(), "name") +
               " is left after the job's deletion");
    }
  }

  // --- The end ---

  void Fail(Invariant invariant, std::string what) {
    if (!violation_.has_value()) violation_ = Violation{invariant, std::move(what)};
    over_ = true;
  }
  const std::optional<Violation>& violation() const {
    if (violation_.has_value() || checker_ == nullptr) return violation_;
    return checker_->violation();
  }

  WorldResult Conclude(const Status& ran) {
    WorldResult result;
    result.violation = violation();
    if (!result.violation.has_value() && !ran.ok()) {
      result.violation = Violation{Invariant::kJobEnds, ran.ToString()};
    }
    result.scenario = scenario_.Brief();
    result.faults = faults_.ledger();
    result.virtual_seconds = ToSeconds(scheduler_.Now() - Instant{});
    result.events = scheduler_.events_run();
    result.store_requests = bucket_.requests();
    result.doorbells = peers_.doorbells();
    result.direct_objects = peers_.objects();
    result.slices = checker_ == nullptr ? 0 : checker_->renewals();
    result.incarnations = job_.status.execution.incarnation + 1;
    result.iterations = plans_.empty() ? 0 : plans_.begin()->second.iterations;
    result.plan_revisions = static_cast<int64_t>(plans_.size());
    result.counted_iterations = checker_ == nullptr ? 0 : checker_->counted_iterations();
    result.checkpoints = checker_ == nullptr ? 0 : checker_->checkpoints();
    result.controllers = operators_.started();
    result.model_digest = job_.status.model_digest;
    return result;
  }

  Scenario scenario_;
  SimScheduler scheduler_;
  FaultInjector faults_;
  SimPeerWire peers_;
  StoreHost host_;
  SimBucket bucket_;
  SimPlatform platform_;
  SimProcess& control_plane_;
  SimProcess& user_;
  InMemoryApiServer server_;
  std::map<int, ExecutionPlan> plans_;  // by revision
  TrainingConfig training_;
  References references_;
  std::map<std::string, const Reference*> courses_;  // by scope
  std::unique_ptr<Checker> checker_;
  Operators operators_{
      {scheduler_, server_, platform_, faults_, bucket_, scenario_,
       [this](Invariant invariant, std::string what) { Fail(invariant, std::move(what)); }}};
  bool suspend_ = false;
  bool suspend_applied_ = false;
  size_t next_change_ = 0;  // of scenario_.plan_changes
  std::optional<Instant> changing_since_;
  bool over_ = false;
  std::optional<Violation> violation_;
  Job job_;
  std::string prefix_;
  std::set<std::string> zombies_;
  std::string exchange_prefix_;
  std::map<std::string, const SimProcess*> owners_;  // by invocation
  KeyMap<std::string> writers_;                      // key -> last writer
};

}  // namespace

void TraceDigest::Add(const std::string& line) {
  ++lines_;
  hash_ = MixSeed({hash_, Xxh3(AsBytes(line))});
}

std::string TraceDigest::Brief() const {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(hash_));
  return std::to_string(lines_) + " lines, xxh3 " + hash;
}

std::string WorldResult::Brief() const {
  return ok() ? "OK" : NameOf(violation->invariant) + ": " + violation->what;
}

WorldResult RunWorld(uint64_t seed, const WorldOptions& options) {
  return World(seed, options).Run();
}

}  // namespace lambdadnn::simulation
