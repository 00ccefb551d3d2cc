// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/scenario.h"

#include <algorithm>
#include <bit>

#include "common/plan/geometry.h"

namespace lambdadnn::simulation {
namespace {

// A draw with the few words that scenarios are written in.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(MixSeed({seed, 0xd1ce})) {}
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(high - low + 1)));
  }
  double Real(double low, double high) { return low + (high - low) * random_.Uniform(); }
  bool Chance(double probability) { return random_.Uniform() < probability; }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[random_.Below(from.size())];
  }
  uint64_t Bits() { return random_.Next(); }

 private:
  SeededRandom random_;
};

constexpr int kMostWorkers = 8;
constexpr int kMostShards = 5;
// They take longer to simulate, and a power cut ends much of what the other faults are about.
constexpr double kFileStores = 0.15;

// Of these seeds, so that those that planted defects were found with stay as they are.
bool MayTrainWhileMeasured(uint64_t seed) { return seed % 17 == 10; }
bool HasBuffers(uint64_t seed) { return seed % 23 == 22 && !MayTrainWhileMeasured(seed); }

AggregationPlan MakeAggregation(Dice& dice, int most_workers, int most_shards) {
  AggregationPlan aggregation;
  const int workers = static_cast<int>(dice.Between(2, most_workers));
  std::vector<int> layers = {workers};
  const int64_t server_layers = dice.Between(1, 3);
  for (int64_t level = 1; level < server_layers; ++level) {
    layers.push_back(static_cast<int>(dice.Between(1, std::max(1, layers.back() / 2 + 1))));
  }
  layers.push_back(1);
  std::reverse(layers.begin(), layers.end());
  aggregation.layers = layers;
  aggregation.shards = static_cast<int>(dice.Between(1, most_shards));
  std::vector<int> divisors;
  for (int s = 1; s <= aggregation.shards; ++s) {
    if (aggregation.shards % s == 0) divisors.push_back(s);
  }
  // Many server functions cost much and show little.
  aggregation.spread = dice.Chance(0.3) ? dice.Pick(divisors) : 1;
  return aggregation;
}

OptimizerConfig MakeOptimizer(Dice& dice) {
  OptimizerConfig optimizer;
  // Powers of two keep most of the arithmetic exact and the runs easy to follow in a debugger.
  optimizer.learning_rate = 0.03125;
  switch (dice.Between(0, 3)) {
    case 0:
      break;
    case 1:
      optimizer.momentum = 0.5;
      optimizer.nesterov = dice.Chance(0.5);
      break;
    case 2:
      optimizer.name = OptimizerKind::kAdam;
      break;
    default:
      optimizer.name = OptimizerKind::kAdamW;
      optimizer.weight_decay = 0.125;
      break;
  }
  if (dice.Chance(0.3)) optimizer.clip_global_norm = 1.5;
  if (dice.Chance(0.2)) optimizer.schedule.warmup_iterations = 5;
  return optimizer;
}

// A model with batch norm's buffers. Batches of a power of two make their weighed sums exact.
void AddBuffers(Scenario* scenario) {
  if (!HasBuffers(scenario->seed)) return;
  Plan& plan = scenario->plan;
  plan.buffers = 1 + static_cast<int64_t>(scenario->seed % 20);
  plan.parameters = VectorElements(plan.parameters, plan.buffers, plan.block_elements);
  plan.global_batch_size =
      static_cast<int>(std::bit_ceil(static_cast<unsigned>(plan.global_batch_size)));
  plan.local_batch_size = (plan.global_batch_size + plan.functions - 1) / plan.functions;
  int64_t& samples = scenario->training.training_samples;
  samples =
      (samples + plan.global_batch_size - 1) / plan.global_batch_size * plan.global_batch_size;
}

void AddAppointments(Dice& dice, const Scenario& scenario, std::vector<CrashAppointment>* out) {
  static const std::vector<std::string> kFunctionOperations = {
      "put", "put", "get", "get", "delete", "list", "head", "delete_many"};
  static const std::vector<std::string> kControllerOperations = {"put",
                                                                 "get",
                                                                 "head",
                                                                 "list",
                                                                 "delete_many",
                                                                 "ensure_group",
                                                                 "delete_group",
                                                                 "delete_instance",
                                                                 "list_instances",
                                                                 "slice_start",
                                                                 "slice_stop",
                                                                 "ask_fingerprint",
                                                                 "kube_get",
                                                                 "kube_list",
                                                                 "kube_create",
                                                                 "kube_update",
                                                                 "kube_patch",
                                                                 "kube_delete",
                                                                 "start_watch",
                                                                 "watch"};
  std::vector<std::string> roles = {"worker", "root-server"};
  if (scenario.plan.aggregation.server_layers() >= 2) roles.push_back("leaf-server");
  if (scenario.plan.aggregation.server_layers() >= 3) roles.push_back("inner-server");
  const int64_t functions = dice.Between(0, 3);
  const int64_t controllers = dice.Between(0, 2);
  for (int64_t i = 0; i < functions; ++i) {
    CrashAppointment appointment;
    appointment.role = dice.Pick(roles);
    appointment.operation = dice.Pick(kFunctionOperations);
    appointment.point = dice.Chance(0.5) ? FaultPoint::kBefore : FaultPoint::kAfter;
    // Rare operations are reached by small numbers only.
    const int64_t often = dice.Chance(0.5) ? 6 : 400;
    appointment.occurrence = dice.Between(1, often);
    if (appointment.operation == "head") appointment.occurrence = 1;  // hardly more in a life
    out->push_back(appointment);
  }
  for (int64_t i = 0; i < controllers; ++i) {
    CrashAppointment appointment;
    appointment.role = "controller";
    appointment.operation = dice.Pick(kControllerOperations);
    appointment.point = dice.Chance(0.5) ? FaultPoint::kBefore : FaultPoint::kAfter;
    appointment.occurrence = dice.Between(1, dice.Chance(0.6) ? 3 : 20);
    // Once in a life.
    if (appointment.operation == "kube_delete") appointment.occurrence = 1;
    out->push_back(appointment);
  }
}

void AddDisturbances(Dice& dice, std::vector<Disturbance>* out) {
  static const std::vector<DisturbanceKind> kKinds = {
      DisturbanceKind::kKillFunction,   DisturbanceKind::kKillFunction,
      DisturbanceKind::kCutOffFunction, DisturbanceKind::kSlowFunction,
      DisturbanceKind::kCutStream,      DisturbanceKind::kKillController,
      DisturbanceKind::kSecondLeader,   DisturbanceKind::kSuspend};
  const int64_t count = dice.Between(1, 4);
  for (int64_t i = 0; i < count; ++i) {
    Disturbance disturbance;
    disturbance.kind = dice.Pick(kKinds);
    disturbance.at_seconds = dice.Real(0.5, 14);
    disturbance.seconds = dice.Real(0.5, 20);
    disturbance.choice = dice.Bits();
    out->push_back(disturbance);
  }
}

double IterationSeconds(const Scenario& scenario, const AggregationPlan& aggregation) {
  const int workers = aggregation.workers();
  const int batch = (scenario.plan.global_batch_size + workers - 1) / workers;
  return scenario.compute_seconds + scenario.compute_seconds_per_sample * batch +
         5 * scenario.store.request_seconds * (aggregation.server_layers() + 1);
}

// The least slice of a handful of iterations, also where one server asks for the objects of many.
double LeastSliceSeconds(const Scenario& scenario, const AggregationPlan& aggregation) {
  int children = 1;
  for (int level = 1; level <= aggregation.server_layers(); ++level) {
    children = std::max(children, aggregation.Width(level - 1) / aggregation.Width(level));
  }
  const int norms = scenario.training.optimizer.clip_global_norm.has_value() ? 2 : 0;
  return 6 * (IterationSeconds(scenario, aggregation) +
              scenario.store.request_seconds * aggregation.shards / aggregation.spread *
                  (children + norms));
}

// Drawn apart, so that the rest of a scenario does not depend on it.
void AddPlanChanges(Dice dice, Scenario* scenario) {
  if (!dice.Chance(0.35)) return;
  scenario->planner_chooses_layers = dice.Chance(0.5);
  // Functions of an older plan must live on to do harm.
  if (dice.Chance(0.5)) scenario->slice_seconds = dice.Real(6, 9);
  const int64_t count = dice.Between(1, 2);
  double at_seconds = 0;
  for (int64_t i = 0; i < count; ++i) {
    PlanChange change;
    at_seconds += dice.Real(2, 10);
    change.at_seconds = at_seconds;
    change.while_suspended = !scenario->planner_chooses_layers;
    change.suspended_seconds = dice.Real(0.5, 6);
    const auto blocks =
        static_cast<int>(BlockCount(scenario->plan.parameters, kSimulatedBlockElements));
    change.aggregation =
        MakeAggregation(dice, std::min(kMostWorkers, scenario->plan.global_batch_size),
                        std::min(kMostShards, blocks));
    // What the old plan's functions write while the new one begins must be nobody's input.
    if (dice.Chance(0.5)) {
      Disturbance zombies;
      zombies.kind = DisturbanceKind::kCutOffAll;
      zombies.at_seconds = std::max(0.5, at_seconds + dice.Real(-2, 1));
      zombies.seconds = dice.Real(5, 25);
      scenario->disturbances.push_back(zombies);
    }
    // A fall-back among them.
    if (dice.Chance(0.5)) {
      Disturbance loss;
      loss.at_seconds = at_seconds + dice.Real(3, 15);
      loss.choice = dice.Bits();
      scenario->disturbances.push_back(loss);
    }
    if (change.while_suspended) at_seconds += change.suspended_seconds;
    // The planner takes no plan of which a slice does not hold a handful of iterations.
    scenario->slice_seconds =
        std::max({scenario->slice_seconds, 8 * IterationSeconds(*scenario, change.aggregation),
                  LeastSliceSeconds(*scenario, change.aggregation)});
    scenario->plan_changes.push_back(change);
  }
}

// The controller's only deletion of a single object: a probe of the store, once in its life. Drawn
// apart as well.
void AddProbeCrash(Dice dice, Scenario* scenario) {
  if (!dice.Chance(0.03)) return;
  CrashAppointment appointment;
  appointment.role = "controller";
  appointment.operation = "delete";
  appointment.point = dice.Chance(0.5) ? FaultPoint::kBefore : FaultPoint::kAfter;
  scenario->appointments.push_back(appointment);
}

// Drawn apart as well.
void AddElection(Dice dice, Scenario* scenario) {
  if (scenario->seed % 6 != 0) return;
  scenario->replicas = dice.Pick<int>({1, 2, 2, 2, 3});
  static const std::vector<DisturbanceKind> kKinds = {
      DisturbanceKind::kKillController, DisturbanceKind::kSecondLeader,
      DisturbanceKind::kCutOffLeader, DisturbanceKind::kStopLeader, DisturbanceKind::kDeleteLease};
  for (int64_t left = dice.Between(1, 2); left > 0; --left) {
    Disturbance disturbance;
    disturbance.kind = dice.Pick(kKinds);
    disturbance.at_seconds = dice.Real(0.5, 14);
    disturbance.seconds = dice.Real(0.5, 12);
    scenario->disturbances.push_back(disturbance);
  }
  if (!dice.Chance(0.3)) return;
  CrashAppointment appointment;
  appointment.role = "election";
  appointment.operation = dice.Pick<std::string>({"kube_create", "kube_get", "kube_update"});
  appointment.point = dice.Chance(0.5) ? FaultPoint::kBefore : FaultPoint::kAfter;
  if (appointment.operation != "kube_create") appointment.occurrence = dice.Between(1, 12);
  scenario->appointments.push_back(appointment);
}

// Drawn apart as well.
void AddPowerCuts(Dice dice, Scenario* scenario) {
  scenario->store_is_files = dice.Chance(kFileStores);
  if (!scenario->store_is_files) return;
  double at_seconds = 0.5;
  for (int64_t left = dice.Between(1, 2); left > 0; --left) {
    PowerCut cut;
    at_seconds += dice.Real(0.5, 10);
    cut.at_seconds = at_seconds;
    if (dice.Chance(0.6)) cut.changes = dice.Between(1, dice.Chance(0.5) ? 60 : 600);
    scenario->power_cuts.push_back(cut);
  }
}

// Drawn apart as well.
constexpr double kPeers = 0.3;
constexpr double kWorkersServe = 0.25;
constexpr double kDirect = 0.5;  // of those with connections

// Drawn apart as well. Writing a checkpoint outlasts iterations, and at times the interval between
// two; slices are long enough for the two that may be written at their end.
void SlowDownCheckpoints(Dice dice, Scenario* scenario) {
  if (!dice.Chance(0.3)) return;
  const double seconds = dice.Real(0.2, 3);
  scenario->store.checkpoint_seconds = seconds;
  scenario->slice_seconds += 4 * seconds;
}

void ExchangeDirectly(Scenario* scenario) {
  scenario->plan.aggregation.transport = TransportKind::kDirect;
  for (PlanChange& change : scenario->plan_changes) {
    change.aggregation.transport = TransportKind::kDirect;
  }
}

void LetWorkersServe(Scenario* scenario) {
  scenario->plan.aggregation.placement = Placement::kWorkers;
  scenario->plan.server_memory_mib = 0;
  for (PlanChange& change : scenario->plan_changes) {
    change.aggregation.placement = Placement::kWorkers;
  }
  for (CrashAppointment& appointment : scenario->appointments) {
    if (appointment.role.ends_with("-server")) appointment.role = "worker";
  }
}

// One function does the whole batch, and then the planner chooses.
void TrainWhileMeasured(Scenario* scenario) {
  if (!MayTrainWhileMeasured(scenario->seed)) return;
  if (!scenario->plan_changes.empty()) return;
  scenario->while_training = true;
  // Measuring takes seconds, and steps are what several functions do sooner.
  constexpr int kLonger = 5;
  scenario->training.epochs *= kLonger;
  scenario->plan.iterations *= kLonger;
  scenario->compute_seconds_per_sample *= 4;
  scenario->compute_seconds /= kLonger;
  AggregationPlan alone;
  alone.placement = Placement::kWorkers;
  scenario->slice_seconds =
      std::max({scenario->slice_seconds, 14 * IterationSeconds(*scenario, alone),
                LeastSliceSeconds(*scenario, alone)});
  for (CrashAppointment& appointment : scenario->appointments) {
    if (appointment.role.ends_with("-server")) appointment.role = "worker";
  }
}

}  // namespace

Scenario MakeScenario(uint64_t seed) {
  Dice dice(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.kube_over_http = seed % 4 == 0;

  Plan& plan = scenario.plan;
  plan.aggregation = MakeAggregation(dice, kMostWorkers, kMostShards);
  plan.functions = plan.aggregation.workers();
  plan.memory_mib = 512;
  plan.server_memory_mib = 256;
  plan.block_elements = kSimulatedBlockElements;
  plan.parameters = dice.Between((plan.aggregation.shards - 1) * kSimulatedBlockElements + 1,
                                 (plan.aggregation.shards + 2) * kSimulatedBlockElements);
  plan.global_batch_size = static_cast<int>(dice.Between(plan.functions, 3 * plan.functions));
  plan.local_batch_size = (plan.global_batch_size + plan.functions - 1) / plan.functions;
  plan.virtual_partitions = plan.functions * static_cast<int>(dice.Between(1, 3));

  TrainingConfig& training = scenario.training;
  training.model.name = "simulated";
  training.dataset.uri = "sim:data";
  training.dataset.classes = 2;
  training.optimizer = MakeOptimizer(dice);
  training.seed = dice.Bits() >> 32;
  training.training_samples = std::max<int64_t>(plan.virtual_partitions, plan.global_batch_size) +
                              dice.Between(0, 3 * plan.global_batch_size);
  AddBuffers(&scenario);
  training.evaluate_each_epoch = dice.Chance(0.5);
  scenario.test_samples = training.evaluate_each_epoch ? 20 : 0;
  // Drawn from what was drawn already: the seeds that planted defects were found with stay as they
  // are.
  if (training.evaluate_each_epoch && training.seed % 4 == 0) {
    training.early_stopping = {TestMetric::kLoss, 2 + static_cast<int64_t>(training.seed / 4 % 3),
                               0};
    training.keep_best = TestMetric::kLoss;
  }
  plan.iterations_per_epoch =
      (training.training_samples + plan.global_batch_size - 1) / plan.global_batch_size;
  training.epochs = (20 + plan.iterations_per_epoch - 1) / plan.iterations_per_epoch;
  plan.iterations = training.epochs * plan.iterations_per_epoch;
  plan.checkpoint_every = dice.Between(3, 9);

  scenario.compute_seconds = dice.Real(0.01, 0.1);
  scenario.compute_seconds_per_sample = dice.Real(0.001, 0.01);
  scenario.keep_checkpoints = static_cast<int>(dice.Between(1, 3));
  scenario.tick_seconds = dice.Pick<double>({0.25, 0.5, 1, 1, 1});
  scenario.store.request_seconds = dice.Real(0.002, 0.01);
  // Less than all iterations take, so that functions hand over to their next slices on the way, and
  // enough for the handful that a slice needs to agree on its end.
  scenario.slice_seconds = std::max(IterationSeconds(scenario, plan.aggregation) * dice.Real(8, 14),
                                    LeastSliceSeconds(scenario, plan.aggregation));
  scenario.platform.stale_list_seconds = dice.Chance(0.5) ? dice.Real(0, 2) : 0;
  // As with pods, which are both.
  scenario.platform.cpu_fixed = scenario.platform.stale_list_seconds > 0;
  scenario.kube.watch_lag_seconds = dice.Chance(0.5) ? dice.Real(0, 1) : 0.01;

  scenario.rates.unavailable = dice.Pick<double>({0, 0.001, 0.003, 0.02});
  scenario.rates.lost_reply = dice.Pick<double>({0, 0.001, 0.003});
  scenario.rates.late = dice.Pick<double>({0, 0.002});
  scenario.rates.full = dice.Pick<double>({0, 0, 0, 0.0005});
  scenario.rates.conflict = dice.Pick<double>({0, 0.001});
  scenario.rates.gone = dice.Pick<double>({0, 0.0005});
  if (dice.Chance(0.08)) scenario.delete_at_seconds = dice.Real(1, 15);
  AddAppointments(dice, scenario, &scenario.appointments);
  AddDisturbances(dice, &scenario.disturbances);
  AddPlanChanges(Dice(MixSeed({seed, 0x9e})), &scenario);
  AddProbeCrash(Dice(MixSeed({seed, 0xde1e7e})), &scenario);
  AddPowerCuts(Dice(MixSeed({seed, 0xd15c})), &scenario);
  AddElection(Dice(MixSeed({seed, 0x1ea5e})), &scenario);
  scenario.platform.peers = Dice(MixSeed({seed, 0x9ee7})).Chance(kPeers);
  if (Dice(MixSeed({seed, 0x3057})).Chance(kWorkersServe)) LetWorkersServe(&scenario);
  if (scenario.platform.peers && Dice(MixSeed({seed, 0xd12ec7})).Chance(kDirect)) {
    ExchangeDirectly(&scenario);
  }
  SlowDownCheckpoints(Dice(MixSeed({seed, 0xc4ec})), &scenario);
  TrainWhileMeasured(&scenario);
  return scenario;
}

std::string Scenario::Brief() const {
  std::string layers;
  for (const int width : plan.aggregation.layers) {
    layers += (layers.empty() ? "" : ",") + std::to_string(width);
  }
  return "layers [" + layers + "], K " + std::to_string(plan.aggregation.shards) + ", spread " +
         std::to_string(plan.aggregation.spread) + ", " + std::to_string(plan.parameters) +
         " parameters, " +
         (plan.buffers > 0 ? std::to_string(plan.buffers) + " of them buffers, " : "") +
         std::to_string(plan.iterations) + " iterations, " +
         std::string(EnumName(training.optimizer.name)) +
         (training.optimizer.clip_global_norm ? " clipped" : "") + ", " +
         std::to_string(appointments.size()) + " crash appointments, " +
         std::to_string(disturbances.size()) + " disturbances, " +
         std::to_string(plan_changes.size()) + " plan changes" +
         (store.checkpoint_seconds > 0 ? ", slow checkpoints" : "") +
         (store_is_files ? ", files, " + std::to_string(power_cuts.size()) + " power cuts" : "") +
         (replicas > 0 ? ", " + std::to_string(replicas) + " replicas" : "") +
         (while_training ? ", trained while measured" : "") +
         (kube_over_http ? ", HTTP to the API server" : "");
}

}  // namespace lambdadnn::simulation
