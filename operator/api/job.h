// SPDX-License-Identifier: Apache-2.0
// ServerlessTrainingJob (lambdadnn.io/v1alpha1) as C++ values. The CRD in crds/ is the source of
// truth of the schema; tests check that both agree. Decoding, defaults and validation: job_codec.h,
// job_validation.h. Decimals that the API carries as strings are doubles here.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/phase_usage.h"
#include "common/json/json_reader.h"
#include "common/plan/augmentation.h"
#include "common/plan/module_facts.h"
#include "common/plan/plan.h"
#include "common/plan/test_metrics.h"
#include "common/plan/time_factors.h"
#include "common/plan/training_values.h"
#include "common/plan/workload.h"
#include "common/plan/workload_facts.h"
#include "operator/api/backend_kind.h"
#include "operator/api/pod_template.h"

namespace lambdadnn {

inline constexpr const char* kApiVersion = "lambdadnn.io/v1alpha1";
inline constexpr const char* kJobKind = "ServerlessTrainingJob";
// Holds the job's object-store prefix and functions until they are cleaned up.
inline constexpr const char* kCleanupFinalizer = "lambdadnn.io/cleanup";

struct ObjectMeta {
  std::string name;
  std::string namespace_name = "default";
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  std::string creation_timestamp;
  std::string deletion_timestamp;
  std::vector<std::string> finalizers;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

// Exactly one of builtin_name, torch_script_uri.
struct ModelSpec {
  std::string builtin_name;  // of the catalogue (docs/models.md)
  // Name -> number, true/false or a list of numbers.
  Json builtin_parameters = Json::object();
  std::string torch_script_uri;
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

struct DatasetSpec {
  std::string uri;
  std::string test_uri;
  DatasetFormat format = DatasetFormat::kIdx;
  int classes = 0;
  std::vector<int64_t> feature_shape;
  double normalize_mean = 0;
  double normalize_standard_deviation = 1;
  std::vector<double> channel_mean;  // one a channel, beside as many deviations; or none
  std::vector<double> channel_standard_deviation;
  Augmentation augment;
  struct Csv {
    std::string label_column;  // name or index; empty = the last one
    bool header = true;
    friend bool operator==(const Csv&, const Csv&) = default;
  };
  std::optional<Csv> csv;  // with format CSV alone
  struct Parquet {
    std::string label_column;  // name or index; empty = "label", or the last one
    friend bool operator==(const Parquet&, const Parquet&) = default;
  };
  std::optional<Parquet> parquet;              // with format Parquet alone
  std::optional<CifarLabels> cifar100_labels;  // with format CIFAR100 alone
  // With formats WebDataset, ImageFolder and Parquet alone.
  struct Images {
    int64_t height = 0;
    int64_t width = 0;
    int channels = 3;
    friend bool operator==(const Images&, const Images&) = default;
  };
  std::optional<Images> image;
  struct Text {  // with format Text alone
    std::string vocabulary;
    Tokenizer tokenizer = Tokenizer::kBasicEnglish;
    int64_t max_tokens = 0;
    friend bool operator==(const Text&, const Text&) = default;
  };
  std::optional<Text> text;
  BadSamples on_bad_sample = BadSamples::kFail;
  int64_t max_bad_samples = 100;
  // The built-in generator of demo data instead of a URI (format IDX).
  struct RenderedDigits {
    int64_t train = 12000;
    int64_t test = 2000;
    uint64_t seed = 1;
    friend bool operator==(const RenderedDigits&, const RenderedDigits&) = default;
  };
  std::optional<RenderedDigits> rendered_digits;
  friend bool operator==(const DatasetSpec&, const DatasetSpec&) = default;
};

enum class LearningRateScaling { kNone, kLinear, kSquareRoot };
template <>
inline constexpr auto kEnumNames<LearningRateScaling> =
    EnumNameTable("None", "Linear", "SquareRoot");

struct OptimizerSpec {
  OptimizerKind name = OptimizerKind::kSgd;
  double learning_rate = 0.01;
  LearningRateScaling learning_rate_scaling = LearningRateScaling::kNone;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool amsgrad = false;
  ScheduleKind schedule = ScheduleKind::kConstant;
  int64_t warmup_iterations = 0;
  int64_t step_iterations = 0;
  double gamma = 0.1;
  double min_learning_rate = 0;
  double power = 1;
  std::optional<double> clip_value;
  std::optional<double> clip_global_norm;
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

enum class Synchronization { kBsp };
template <>
inline constexpr auto kEnumNames<Synchronization> = EnumNameTable("BSP");

struct TrainingSpec {
  double epochs = 1;
  std::optional<int> global_batch_size;  // exactly one of these two
  std::optional<int> max_global_batch_size;
  int local_batch_size = 0;  // needed with max_global_batch_size
  uint64_t seed = 0;
  Loss loss = Loss::kCrossEntropy;
  double label_smoothing = 0;
  OptimizerSpec optimizer;
  Synchronization synchronization = Synchronization::kBsp;
  std::optional<double> stop_at_loss;
  int64_t evaluate_every = 1;  // epochs
  std::optional<EarlyStopping> early_stopping;
  std::optional<TestMetric> keep_best;
  std::vector<double> class_weights;  // empty = all 1; CrossEntropy alone
  int micro_batch_size = 0;           // 0 = whole batches
  Precision precision = Precision::kFloat32;
  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

// How spec.aggregation writes that the planner chooses.
inline constexpr const char* kAuto = "Auto";

struct AggregationSpec {
  std::optional<TransportKind> transport;  // none = kAuto
  std::optional<Placement> placement;
  std::optional<int> shards;
  std::vector<int> layers;  // top-down; empty = the planner chooses
  std::optional<int> spread;
  std::optional<int> server_memory_mib;
  friend bool operator==(const AggregationSpec&, const AggregationSpec&) = default;
};

struct ObjectStoreSpec {
  std::string uri;  // Local backend: file:///dir; otherwise built from bucket
  std::string endpoint;
  std::string bucket;
  std::string prefix;
  std::string region = "us-east-1";
  bool path_style = true;
  bool sign_payload = true;  // over plain HTTP
  std::string credentials_secret;
  std::string ca_secret;
  friend bool operator==(const ObjectStoreSpec&, const ObjectStoreSpec&) = default;
};

struct CheckpointSpec {
  double interval_seconds = 30;
  int keep = 2;
  std::string resume_from;
  friend bool operator==(const CheckpointSpec&, const CheckpointSpec&) = default;
};

// Whether a job's working objects go from the store at its end.
enum class CleanupPolicy { kAlways, kOnSuccess, kNever };
template <>
inline constexpr auto kEnumNames<CleanupPolicy> = EnumNameTable("Always", "OnSuccess", "Never");

// Whether a job without a profile is profiled before it trains, or while it does.
enum class Profiling { kBeforeTraining, kWhileTraining };
template <>
inline constexpr auto kEnumNames<Profiling> = EnumNameTable("BeforeTraining", "WhileTraining");

struct JobSpec {
  ModelSpec model;
  DatasetSpec dataset;
  TrainingSpec training;
  Objective objective;
  struct Functions {
    int min = 1;
    std::optional<int> max;
    std::optional<int> memory_min_mib;
    std::optional<int> memory_max_mib;
    std::optional<int> memory_step_mib;
    int gpu = 0;  // of each worker
    friend bool operator==(const Functions&, const Functions&) = default;
  } functions;
  AggregationSpec aggregation;
  std::optional<WorkloadProfile> profile;
  Profiling profiling = Profiling::kBeforeTraining;
  ObjectStoreSpec object_store;
  CheckpointSpec checkpoint;
  std::optional<BackendKind> backend;  // none = what the operator runs
  Addressing addressing = Addressing::kPod;
  PeerChannelMode peer_channel = PeerChannelMode::kTls;
  PodTemplate pod_template;
  bool suspend = false;
  std::string managed_by;
  int backoff_limit = 6;
  int priority = 0;
  std::optional<double> active_deadline_seconds;
  std::optional<double> ttl_seconds_after_finished;
  CleanupPolicy cleanup_policy = CleanupPolicy::kAlways;
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

struct Condition {
  std::string type;  // Accepted, Provisioned, Ready, Running, Suspended, Degraded, Complete, Failed
  std::string status;  // True, False, Unknown
  std::string reason;
  std::string message;
  std::string last_transition_time;
  int64_t observed_generation = 0;
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct ProgressStatus {
  int64_t iteration = 0;
  int64_t iterations = 0;
  int64_t epoch = 0;
  std::optional<double> loss;
  TestMetrics test;  // after the newest evaluation
  double samples_per_second = 0;
  int progress_percentage = 0;
  // Absent before the job has a plan and capacity, and once it is finished.
  std::optional<double> estimated_remaining_seconds;
  // Of the whole job at its end; absent likewise, and where nothing has a price.
  std::optional<double> estimated_cost;
  friend bool operator==(const ProgressStatus&, const ProgressStatus&) = default;
};

// The model of the best evaluation, beside the last one.
struct BestModelStatus {
  std::string uri;
  int64_t iteration = 0;  // after so many
  TestMetric metric = TestMetric::kLoss;
  double value = 0;
  friend bool operator==(const BestModelStatus&, const BestModelStatus&) = default;
};

struct UsageStatus {
  double billed_gib_seconds = 0;
  double cost = 0;
  std::string currency;  // of all costs in the status; empty = US dollars
  int64_t store_requests = 0;
  int64_t store_bytes = 0;
  int64_t slices = 0;
  int64_t restarts = 0;
  int64_t cold_starts = 0;
  // The time up to which functions are billed, as the age of one of them at that time: a new
  // controller bills what was used since, independent of its own clock. Empty = no function
  // existed.
  std::string metered_function;
  double metered_seconds = 0;
  // Wall seconds of a worker by Phase, mean over the workers, of slices that are over; phases of
  // servers alone are zero.
  std::array<double, kPhaseCount> worker_seconds = {};
  friend bool operator==(const UsageStatus&, const UsageStatus&) = default;
};

// What a plan is made for and may change during the job.
struct PlannedInputs {
  Objective objective;
  JobSpec::Functions functions;
  AggregationSpec aggregation;
  int64_t epochs = 0;            // 0 = as many as the plan's iterations are
  int too_small_worker_mib = 0;  // ExecutionStatus's
  int too_small_server_mib = 0;
  friend bool operator==(const PlannedInputs&, const PlannedInputs&) = default;
};

// The instance that runs a role of the present round.
struct BoundFunction {
  std::string role;  // its name: "worker-3", "server-0"
  int attempt = 1;   // of the role in the round: grows when another instance takes it over
  std::string uid;   // of the instance
  friend bool operator==(const BoundFunction&, const BoundFunction&) = default;
};

// A plan in force that was made before the model was measured (Profiling::kWhileTraining).
enum class UnmeasuredPlan {
  kNone,    // it was made from a profile
  kTrains,  // the profile is measured meanwhile
  kLeft,    // it cannot go on: the job is profiled first, and goes on under another plan
  kKept,    // no profile could be measured: the job goes on under it
};
template <>
inline constexpr auto kEnumNames<UnmeasuredPlan> = EnumNameTable("None", "Trains", "Left", "Kept");

// What the controller must remember across its own restarts (all else is observed again).
struct ExecutionStatus {
  int64_t incarnation = 0;               // grows at each fall-back to a checkpoint
  int64_t first_iteration = 0;           // of the slices of this incarnation
  std::optional<Json> start_checkpoint;  // CheckpointReference of it; absent = fresh
  int64_t failures = 0;       // counted against backoffLimit; back to 0 on a newer checkpoint
  double active_seconds = 0;  // before the last suspension
  // What the plan in force was made for; absent = not known, and then the plan is kept.
  std::optional<PlannedInputs> planned_for;
  // One for each role of the present round (incarnation, first iteration). Written before the first
  // of its slices starts; empty = none has.
  std::vector<BoundFunction> functions;
  // Of the newest controller that took the job over: older ones leave it alone.
  int64_t leader_epoch = 0;
  // What the times of the profile were multiplied by for the plan in force, as the run until then
  // had shown.
  TimeFactors corrections;
  // Changes of plan that were begun because the run differed from its prediction.
  int drift_replans = 0;
  // The largest memory size with which a worker, and a server, ran out of memory: later plans give
  // more. 0 = none.
  int too_small_worker_mib = 0;
  int too_small_server_mib = 0;
  std::string job_id;  // job_id.h; the job's place in the store, whatever the annotation says since
  std::string job_uid;  // of the object that this status is of
  // Of the object before this one whose place in the store the job goes on in; empty = none was.
  std::string predecessor_uid;
  ModuleFacts module;  // of spec.model.torchScript
  // Of a job that trains while it is profiled, since it was accepted.
  WorkloadFacts facts;
  UnmeasuredPlan unmeasured_plan = UnmeasuredPlan::kNone;
  friend bool operator==(const ExecutionStatus&, const ExecutionStatus&) = default;
};

// Where in a run a prediction begins: what was done and spent until then.
struct PredictedFrom {
  int64_t iteration = 0;
  double seconds = 0;  // active time of the job
  double cost = 0;
  friend bool operator==(const PredictedFrom&, const PredictedFrom&) = default;
};

// One revision of the plan, as it was made: replaying the list gives the same bits.
struct PlanRecord {
  int revision = 1;
  int64_t first_iteration = 0;
  int functions = 0;
  int memory_mib = 0;
  AggregationPlan aggregation;
  int64_t iterations = 0;  // of the whole job, as planned then: a cosine schedule ends there
  std::string reason;      // why it was made
  double at_seconds = 0;   // active time of the job then, and what had been spent
  double cost_before = 0;
  double predicted_seconds = 0;  // of the whole job, as seen then; 0 = nothing was predicted
  double predicted_cost = 0;
  // Of a plan that was predicted while it was carried out; absent = when it was made.
  std::optional<PredictedFrom> predicted_from;

  PredictedFrom prediction_begin() const {
    return predicted_from.value_or(PredictedFrom{first_iteration, at_seconds, cost_before});
  }
  friend bool operator==(const PlanRecord&, const PlanRecord&) = default;
};

inline constexpr const char* kPerJobCredentials = "PerJob";      // the store's, for this job alone
inline constexpr const char* kSecretCredentials = "Secret";      // the job's Secret's
inline constexpr const char* kOperatorCredentials = "Operator";  // the operator's own

struct JobStatus {
  int64_t observed_generation = 0;
  std::string
      phase;  // Pending, Profiling, Planning, Starting, Running, Suspended, Complete, Failed
  std::vector<Condition> conditions;
  std::optional<Plan> plan;
  std::vector<PlanRecord> plan_history;    // the plan in force last
  std::optional<WorkloadProfile> profile;  // as measured, or a copy of the given one
  ExecutionStatus execution;
  ProgressStatus progress;
  UsageStatus usage;
  int workers_desired = 0;
  int workers_ready = 0;
  std::string model_uri;
  std::string model_digest;
  std::optional<BestModelStatus> best_model;  // with keepBest, once the job is complete
  // What was found out about the object store when the job was accepted
  // (operator/controller/store/store_probe.h); absent = not asked yet.
  std::optional<std::vector<std::string>> store_capabilities;
  // With whose credentials the functions reach an S3 store: kPerJobCredentials, or another's and
  // why. Empty = not decided, or another kind of store.
  std::string store_credentials;
  std::string store_credentials_message;
  std::string start_time;
  std::string completion_time;
  friend bool operator==(const JobStatus&, const JobStatus&) = default;
};

struct Job {
  ObjectMeta metadata;
  JobSpec spec;
  JobStatus status;
  friend bool operator==(const Job&, const Job&) = default;
};

}  // namespace lambdadnn
