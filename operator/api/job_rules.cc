// SPDX-License-Identifier: Apache-2.0
// The CRD's x-kubernetes-validations in C++: the same places and sentences.
#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/plan/test_metrics.h"
#include "common/plan/training_values.h"
#include "common/plan/workload.h"
#include "operator/api/job.h"
#include "operator/api/job_rule_values.h"
#include "operator/api/job_validation.h"

namespace lambdadnn {
namespace {

// Calls visit(value, the one before, its path) for each value at "a.b[].c" of `self`; items of
// lists are told nothing of before, as in API servers' lists that are no maps.
template <typename Visit>
void VisitPath(const Json& self, const Json* old, const std::string& begin, std::string_view path,
               const Visit& visit) {
  if (path.empty()) return visit(self, old, begin);
  const size_t dot = path.find('.');
  std::string name(path.substr(0, dot));
  const std::string_view rest = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  const bool items = name.ends_with("[]");
  if (items) name.resize(name.size() - 2);
  const Json* value = Find(self, name.c_str());
  if (value == nullptr) return;
  const std::string at = begin.empty() ? name : begin + "." + name;
  if (!items) {
    return VisitPath(*value, old == nullptr ? nullptr : Find(*old, name.c_str()), at, rest, visit);
  }
  if (!value->is_array()) return;
  for (size_t i = 0; i < value->size(); ++i) {
    VisitPath((*value)[i], nullptr, at + "[" + std::to_string(i) + "]", rest, visit);
  }
}

bool IsWholeMib(const Json& self, const Json*) {
  if (!self.is_string()) return true;
  const auto& text = self.get_ref<const std::string&>();
  // What is no quantity at all breaks the pattern, not this rule.
  if (text.empty() || text.find_first_not_of("0123456789.KMGTki") != std::string::npos) return true;
  return ParseMemoryMib(text).ok();
}

// Whether field `name` is as it was.
template <const char* const& name>
bool Unchanged(const Json& self, const Json* old) {
  if (old == nullptr) return true;
  const Json* now = Find(self, name);
  const Json* before = Find(*old, name);
  if (now == nullptr || before == nullptr) return now == before;
  return *now == *before;
}

// Of a field that is always there.
bool IsUnchanged(const Json& self, const Json* old) { return old == nullptr || self == *old; }

// Whether field `name` is there as it was before, whatever its value.
template <const char* const& name>
bool StillThere(const Json& self, const Json* old) {
  return old == nullptr || Has(self, name) == Has(*old, name);
}

// Whether field `name` is as it was, or the job was suspended before the change.
template <const char* const& name>
bool UnchangedOrSuspended(const Json& self, const Json* old) {
  return old == nullptr || Flag(*old, "suspend") || Unchanged<name>(self, old);
}

// What is set by other means for every pod.
bool LeavesOperatorNames(const Json& self, const Json*) {
  constexpr std::string_view kTaken[] = {
      "lambdadnn.io/",           "autoscaling.knative.dev/", "serving.knative.dev/",
      "networking.knative.dev/", "features.knative.dev/",    "queue.sidecar.serving.knative.dev/",
  };
  if (!self.is_object()) return true;
  const auto items = self.items();
  return std::none_of(items.begin(), items.end(), [&](const auto& item) {
    const std::string& key = item.key();
    return key == "app.kubernetes.io/managed-by" ||
           std::any_of(std::begin(kTaken), std::end(kTaken),
                       [&](std::string_view prefix) { return key.starts_with(prefix); });
  });
}

bool IsFreeVariable(const Json& self, const Json*) {
  if (!self.is_string()) return true;
  const auto& name = self.get_ref<const std::string&>();
  return !name.starts_with("LAMBDADNN_") && name != "OPENBLAS_NUM_THREADS";
}

bool LeavesPlannedResources(const Json& self, const Json*) {
  const auto names = [&](const char* list, const char* name) {
    const Json* amounts = Find(self, list);
    return amounts != nullptr && amounts->is_object() && amounts->contains(name);
  };
  return !names("requests", "cpu") && !names("requests", "memory") && !names("limits", "cpu") &&
         !names("limits", "memory");
}

Loss LossOf(const Json& self) {
  return FindEnum<Loss>(Text(self, "loss")).value_or(Loss::kCrossEntropy);
}

// Whether field `name` is there with that loss alone.
template <const char* const& name>
bool IsOfCrossEntropy(const Json& self, const Json*) {
  return !Has(self, name) || LossOf(self) == Loss::kCrossEntropy;
}

// Whether the loss has this metric, where field `name` asks for it.
template <const char* const& name, TestMetric metric>
bool MetricFits(const Json& self, const Json*) {
  const Json* field = Find(self, name);
  if (field == nullptr || FindEnum<TestMetric>(Text(*field, "metric")) != metric) return true;
  return CheckMetric(metric, LossOf(self), 0, name).ok();
}

bool WasThere(const Json&, const Json* old) { return old != nullptr; }

constexpr const char* kModel = "model";
constexpr const char* kDataset = "dataset";
constexpr const char* kTraining = "training";
constexpr const char* kObjective = "objective";
constexpr const char* kFunctions = "functions";
constexpr const char* kAggregation = "aggregation";
constexpr const char* kProfile = "profile";
constexpr const char* kGpu = "gpu";
constexpr const char* kGlobalBatchSize = "globalBatchSize";
constexpr const char* kMaxGlobalBatchSize = "maxGlobalBatchSize";
constexpr const char* kLocalBatchSize = "localBatchSize";
constexpr const char* kStopAt = "stopAt";
constexpr const char* kLabelSmoothing = "labelSmoothing";
constexpr const char* kClassWeights = "classWeights";
constexpr const char* kMicroBatchSize = "microBatchSize";
constexpr const char* kPrecision = "precision";
constexpr const char* kEvaluateEvery = "evaluateEvery";
constexpr const char* kEarlyStopping = "earlyStopping";
constexpr const char* kKeepBest = "keepBest";
constexpr const char* kUri = "uri";
constexpr const char* kBucket = "bucket";
constexpr const char* kPrefix = "prefix";
constexpr const char* kEndpoint = "endpoint";
constexpr const char* kCredentialsSecretRef = "credentialsSecretRef";
constexpr const char* kCaSecretRef = "caSecretRef";
constexpr const char* kResumeFrom = "resumeFrom";
constexpr const char* kBackend = "backend";
constexpr const char* kAddressing = "addressing";
constexpr const char* kPeerChannel = "peerChannel";
constexpr const char* kPodTemplate = "podTemplate";
constexpr const char* kProfiling = "profiling";
constexpr const char* kManagedBy = "managedBy";
constexpr const char* kContainers = "containers";
constexpr const char* kImagePullSecrets = "imagePullSecrets";
constexpr const char* kServiceAccountName = "serviceAccountName";

constexpr const char* kImmutable = "cannot be changed once the job exists; create another job";
constexpr const char* kAddedOrRemoved =
    "cannot be added or removed once the job exists; create another job";
constexpr const char* kWhileRunning =
    "cannot be changed while the job runs; set spec.suspend to true first";

constexpr const char* kBelowOne = "must be below 1";
constexpr const char* kWholeMib = "must be a whole number of MiB, such as \"1728Mi\"";
constexpr const char* kMinMax = "min must not be above max";
constexpr const char* kOperatorNames =
    "app.kubernetes.io/managed-by and names of lambdadnn.io and knative.dev are set by the "
    "operator; use other names";

bool HasNameOfLabels(const Json& self, const Json*) {
  const Json* name = Find(self, "name");
  if (name == nullptr || !name->is_string()) return true;
  const auto& text = name->get_ref<const std::string&>();
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && is_word(text.front()) && is_word(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_word(c) || c == '-'; });
}

bool FixedWithinFunctions(const Json& self, const Json*) {
  const auto fixed = WholeAt(self, "objective.fixed.functions");
  return NotAbove(WholeAt(self, "functions.min"), fixed) &&
         NotAbove(fixed, WholeAt(self, "functions.max"));
}

bool LayersEndWithFixed(const Json& self, const Json*) {
  const auto fixed = WholeAt(self, "objective.fixed.functions");
  const Json* layers = FindPath(self, "aggregation.layers");
  if (!fixed || layers == nullptr || !layers->is_array() || layers->empty()) return true;
  return !layers->back().is_number_integer() || layers->back().get<int64_t>() == *fixed;
}

// Left out, it is the first of its values.
bool IsProfiledAsBefore(const Json& self, const Json* old) {
  const auto profiling = [](const Json& spec) {
    const std::string text = Text(spec, kProfiling);
    return text.empty() ? std::string(EnumName(Profiling::kBeforeTraining)) : text;
  };
  return old == nullptr || profiling(self) == profiling(*old);
}

bool DirectHasConnections(const Json& self, const Json*) {
  return Text(self, "aggregation.transport") != "Direct" ||
         (Text(self, "peerChannel") != "None" && Text(self, "addressing") != "Service");
}

bool HasDeadline(const Json& self) { return Has(self, "deadlineSeconds") || Has(self, "finishBy"); }

bool AnyObjective(const Json& self, const Json*) {
  return HasDeadline(self) || Has(self, "budget") || Has(self, "performanceCostRatio") ||
         Has(self, "fixed");
}

bool FixedIsAlone(const Json& self, const Json*) {
  return !Has(self, "fixed") ||
         !(HasDeadline(self) || Has(self, "budget") || Has(self, "performanceCostRatio") ||
           Has(self, "bestEffort") || Has(self, "confidence"));
}

bool OneDeadline(const Json& self, const Json*) {
  return !Has(self, "deadlineSeconds") || !Has(self, "finishBy");
}

// Without either the least product of time and cost is often a plan that takes for ever, or costs
// what nobody would pay.
bool RatioIsBounded(const Json& self, const Json*) {
  const Json* ratio = Find(self, "performanceCostRatio");
  return ratio == nullptr || Has(*ratio, "weight") || HasDeadline(self);
}

bool BestEffortHasDeadline(const Json& self, const Json*) {
  return !Flag(self, "bestEffort") || HasDeadline(self);
}

bool ConfidenceHasDeadline(const Json& self, const Json*) {
  return !Has(self, "confidence") || HasDeadline(self);
}

bool IsConfidence(const Json& self, const Json*) {
  const double value = AsDecimal(self).value_or(kDefaultConfidence);
  return value >= kLeastConfidence && value <= kMostConfidence;
}

bool MomentumIsForSgd(const Json& self, const Json*) {
  const auto name = FindEnum<OptimizerKind>(Text(self, "name"));
  if (!name || name == OptimizerKind::kSgd) return true;
  return Decimal(self, "momentum") == 0 && Decimal(self, "dampening") == 0 &&
         !Flag(self, "nesterov");
}

bool NesterovHasMomentum(const Json& self, const Json*) {
  return !Flag(self, "nesterov") ||
         (Decimal(self, "momentum") > 0 && Decimal(self, "dampening") == 0);
}

bool MemoryOrdered(const Json& self, const Json*) {
  const auto min = ParseMemoryMib(Text(self, "min"));
  const auto max = ParseMemoryMib(Text(self, "max"));
  return !min.ok() || !max.ok() || *min <= *max;
}

bool LayersGrow(const Json& self, const Json*) {
  const Json* layers = Find(self, "layers");
  if (layers == nullptr || !layers->is_array() || layers->empty()) return true;
  for (const Json& width : *layers) {
    if (!width.is_number_integer()) return true;
  }
  return layers->front() == 1 && std::is_sorted(layers->begin(), layers->end());
}

bool SpreadDividesShards(const Json& self, const Json*) {
  const auto spread = WholeAt(self, "spread");
  const auto shards = WholeAt(self, "shards");
  return !spread || !shards || *spread < 1 || *shards % *spread == 0;
}

bool ServerMemoryIsOfServers(const Json& self, const Json*) {
  const Json* placement = Find(self, "placement");
  return Find(self, "serverMemory") == nullptr || placement == nullptr || *placement != "Workers";
}

constexpr const char* kPodSpec = "spec.podTemplate.spec";
constexpr const char* kOptimizer = "spec.training.optimizer";
constexpr const char* kOptimizerClip = "spec.training.optimizer.clip";

constexpr JobRule kRules[] = {
    {"metadata", "name",
     "the name may have at most 44 characters, since the names of its functions are longer",
     [](const Json& self, const Json*) { return Text(self, "name").size() <= 44; }},
    {"metadata", "name",
     "must consist of lower-case letters, digits and '-', and begin and end with a letter or digit",
     HasNameOfLabels},
    {"spec", kModel, kImmutable, Unchanged<kModel>},
    {"spec", kDataset, kImmutable, Unchanged<kDataset>},
    {"spec", kFunctions, kWhileRunning, UnchangedOrSuspended<kFunctions>},
    {"spec.functions", kGpu, kImmutable, Unchanged<kGpu>},
    {"spec", kAggregation, kWhileRunning, UnchangedOrSuspended<kAggregation>},
    {"spec", kProfile, kImmutable, Unchanged<kProfile>},
    {"spec", kBackend, kImmutable, Unchanged<kBackend>},
    {"spec", kAddressing, kWhileRunning, UnchangedOrSuspended<kAddressing>},
    {"spec", kPeerChannel, kWhileRunning, UnchangedOrSuspended<kPeerChannel>},
    {"spec", kPodTemplate, kWhileRunning, UnchangedOrSuspended<kPodTemplate>},
    {"spec", kProfiling, kImmutable, IsProfiledAsBefore},
    {kPodSpec, kServiceAccountName, kImmutable, Unchanged<kServiceAccountName>},
    {kPodSpec, kImagePullSecrets, kImmutable, Unchanged<kImagePullSecrets>},
    {kPodSpec, kContainers, kImmutable, Unchanged<kContainers>},
    {"spec.podTemplate.metadata.labels", "", kOperatorNames, LeavesOperatorNames},
    {"spec.podTemplate.metadata.annotations", "", kOperatorNames, LeavesOperatorNames},
    {"spec.podTemplate.spec.containers[].env[].name", "",
     "LAMBDADNN_* and OPENBLAS_NUM_THREADS are set by the operator; use another name",
     IsFreeVariable},
    {"spec.podTemplate.spec.containers[].resources", "",
     "cpu and memory are what the planner chooses; bound them by spec.functions.memory",
     LeavesPlannedResources},
    {"spec.runtime", "",
     "is now spec.podTemplate: image and env are in podTemplate.spec.containers, addressing is "
     "spec.addressing",
     WasThere},
    {"spec", kManagedBy, kImmutable, Unchanged<kManagedBy>},
    {"spec", kTraining,
     "globalBatchSize must not be larger than dataset.renderedDigits.train, the number of training "
     "samples",
     [](const Json& self, const Json*) {
       return NotAbove(WholeAt(self, "training.globalBatchSize"),
                       WholeAt(self, "dataset.renderedDigits.train"));
     }},
    {"spec", kTraining, "globalBatchSize must not be larger than profile.trainingSamples",
     [](const Json& self, const Json*) {
       return NotAbove(WholeAt(self, "training.globalBatchSize"),
                       WholeAt(self, "profile.trainingSamples"));
     }},
    {"spec", kObjective, "fixed.functions must lie between functions.min and functions.max",
     FixedWithinFunctions},
    {"spec", kAggregation, "layers must end with objective.fixed.functions, the number of workers",
     LayersEndWithFixed},
    {"spec", kAggregation,
     "transport Direct needs functions that connect to each other; use ObjectStore, or leave out "
     "peerChannel None and addressing Service",
     DirectHasConnections},
    {"spec", kTraining, "precision bfloat16 is for processors; remove it, or functions.gpu",
     [](const Json& self, const Json*) {
       return Text(self, "training.precision") != "bfloat16" ||
              WholeAt(self, "functions.gpu").value_or(0) == 0;
     }},
    {"spec.model", "", "set exactly one of builtin and torchScript",
     [](const Json& self, const Json*) {
       return Has(self, "builtin") != Has(self, "torchScript");
     }},
    {"spec.training", kGlobalBatchSize, kImmutable, Unchanged<kGlobalBatchSize>},
    {"spec.training", kMaxGlobalBatchSize, kImmutable, Unchanged<kMaxGlobalBatchSize>},
    {"spec.training", kLocalBatchSize, kImmutable, Unchanged<kLocalBatchSize>},
    {"spec.training", kStopAt, kImmutable, Unchanged<kStopAt>},
    {"spec.training", kLabelSmoothing, kImmutable, Unchanged<kLabelSmoothing>},
    {"spec.training", kClassWeights, kImmutable, Unchanged<kClassWeights>},
    {"spec.training", kMicroBatchSize, kImmutable, Unchanged<kMicroBatchSize>},
    {"spec.training", kEvaluateEvery, kImmutable, Unchanged<kEvaluateEvery>},
    {"spec.training", kEarlyStopping, kImmutable, Unchanged<kEarlyStopping>},
    {"spec.training", kKeepBest, kImmutable, Unchanged<kKeepBest>},
    {"spec.training.seed", "", kImmutable, IsUnchanged},
    {"spec.training.loss", "", kImmutable, IsUnchanged},
    {"spec.training", kPrecision, kImmutable, Unchanged<kPrecision>},
    {kOptimizer, "", kImmutable, IsUnchanged},
    {"spec.training.synchronization", "", kImmutable, IsUnchanged},
    {"spec.training", "",
     "set exactly one of globalBatchSize (this batch, whatever the number of functions) and "
     "maxGlobalBatchSize (the planner may choose up to it)",
     [](const Json& self, const Json*) {
       return Has(self, "globalBatchSize") != Has(self, "maxGlobalBatchSize");
     }},
    {"spec.training", "", "localBatchSize is required with maxGlobalBatchSize",
     [](const Json& self, const Json*) {
       return !Has(self, "maxGlobalBatchSize") || Has(self, "localBatchSize");
     }},
    {"spec.training", "", "localBatchSize must not be larger than maxGlobalBatchSize",
     [](const Json& self, const Json*) {
       return NotAbove(WholeAt(self, "localBatchSize"), WholeAt(self, "maxGlobalBatchSize"));
     }},
    {"spec.training", "", "labelSmoothing belongs to CrossEntropy; remove it or use that loss",
     IsOfCrossEntropy<kLabelSmoothing>},
    {"spec.training", "", "classWeights belong to CrossEntropy; remove them or use that loss",
     IsOfCrossEntropy<kClassWeights>},
    {"spec.training", kEarlyStopping, kErrorIsOfNumbers,
     MetricFits<kEarlyStopping, TestMetric::kMeanAbsoluteError>},
    {"spec.training", kEarlyStopping, kAccuracyIsOfClasses,
     MetricFits<kEarlyStopping, TestMetric::kAccuracy>},
    {"spec.training", kEarlyStopping, kTop5IsOfClasses,
     MetricFits<kEarlyStopping, TestMetric::kTop5Accuracy>},
    {"spec.training", kKeepBest, kErrorIsOfNumbers,
     MetricFits<kKeepBest, TestMetric::kMeanAbsoluteError>},
    {"spec.training", kKeepBest, kAccuracyIsOfClasses,
     MetricFits<kKeepBest, TestMetric::kAccuracy>},
    {"spec.training", kKeepBest, kTop5IsOfClasses,
     MetricFits<kKeepBest, TestMetric::kTop5Accuracy>},
    {"spec.training.labelSmoothing", "", kBelowOne, IsBelowOne},
    {"spec.training.classWeights[]", "", "must be from 0.01 to 100",
     [](const Json& self, const Json*) {
       const double weight = AsDecimal(self).value_or(1);
       return weight >= 0.01 && weight <= 100;
     }},
    {kOptimizer, "", "momentum, dampening and nesterov belong to SGD; remove them or use SGD",
     MomentumIsForSgd},
    {kOptimizer, "", "nesterov needs a momentum above 0 and no dampening", NesterovHasMomentum},
    {kOptimizer, "", "amsgrad belongs to Adam and AdamW; remove it or use one of them",
     [](const Json& self, const Json*) {
       return FindEnum<OptimizerKind>(Text(self, "name")) != OptimizerKind::kSgd ||
              !Flag(self, "amsgrad");
     }},
    {kOptimizer, "", "schedule.minLearningRate must not be above learningRate",
     [](const Json& self, const Json*) {
       const double rate = Decimal(self, "learningRate");
       return rate <= 0 || Decimal(self, "schedule.minLearningRate") <= rate;
     }},
    {"spec.training.optimizer.learningRate", "", kAboveZero, IsAboveZero},
    {"spec.training.optimizer.beta1", "", kBelowOne, IsBelowOne},
    {"spec.training.optimizer.beta2", "", kBelowOne, IsBelowOne},
    {"spec.training.optimizer.epsilon", "", kAboveZero, IsAboveZero},
    {"spec.training.optimizer.schedule", "", "stepIterations is required for the schedule Step",
     [](const Json& self, const Json*) {
       return FindEnum<ScheduleKind>(Text(self, "name")) != ScheduleKind::kStep ||
              WholeAt(self, "stepIterations").value_or(0) > 0;
     }},
    {"spec.training.optimizer.schedule.gamma", "", kAboveZero, IsAboveZero},
    {"spec.training.optimizer.schedule.power", "", kAboveZero, IsAboveZero},
    {kOptimizerClip, "", "set exactly one of value and globalNorm",
     [](const Json& self, const Json*) { return Has(self, "value") != Has(self, "globalNorm"); }},
    {"spec.training.optimizer.clip.value", "", kAboveZero, IsAboveZero},
    {"spec.training.optimizer.clip.globalNorm", "", kAboveZero, IsAboveZero},
    {"spec.objective", "",
     "set a deadline (deadlineSeconds or finishBy), a budget or both, performanceCostRatio, or "
     "fixed",
     AnyObjective},
    {"spec.objective", "", "fixed leaves nothing else to reach; remove it or the other fields",
     FixedIsAlone},
    {"spec.objective", "", "set deadlineSeconds or finishBy, not both", OneDeadline},
    {"spec.objective", "",
     "performanceCostRatio needs its weight (\"0.5\": cost and time count the same), or a deadline "
     "beside it",
     RatioIsBounded},
    {"spec.objective", "", "bestEffort needs a deadline, deadlineSeconds or finishBy",
     BestEffortHasDeadline},
    {"spec.objective", "", "confidence needs a deadline, deadlineSeconds or finishBy",
     ConfidenceHasDeadline},
    {"spec.objective.confidence", "", "must be from 0.5 to 0.99", IsConfidence},
    {"spec.objective.performanceCostRatio.weight", "", kAtMostOne, IsAtMostOne},
    {"spec.objective.budget", "", kAboveZero, IsAboveZero},
    {"spec.objective.fixed.memory", "", kWholeMib, IsWholeMib},
    {"spec.functions", "", kMinMax,
     [](const Json& self, const Json*) {
       return NotAbove(WholeAt(self, "min"), WholeAt(self, "max"));
     }},
    {"spec.functions.memory", "", kMinMax, MemoryOrdered},
    {"spec.functions.memory.min", "", kWholeMib, IsWholeMib},
    {"spec.functions.memory.max", "", kWholeMib, IsWholeMib},
    {"spec.functions.memory.step", "", kWholeMib, IsWholeMib},
    {"spec.aggregation", "",
     "layers begins with the root, 1, and never shrinks towards the workers, e.g. [1, 2, 8]",
     LayersGrow},
    {"spec.aggregation", "", "spread must divide shards", SpreadDividesShards},
    {"spec.aggregation", "",
     "serverMemory is of dedicated servers, and with placement Workers there are none; leave one "
     "of "
     "them out",
     ServerMemoryIsOfServers},
    {"spec.aggregation.serverMemory", "", kWholeMib, IsWholeMib},
    {"spec.objectStore", kUri, kImmutable, Unchanged<kUri>},
    {"spec.objectStore", kBucket, kImmutable, Unchanged<kBucket>},
    {"spec.objectStore", kPrefix, kImmutable, Unchanged<kPrefix>},
    {"spec.objectStore", kEndpoint, kAddedOrRemoved, StillThere<kEndpoint>},
    {"spec.objectStore", kCredentialsSecretRef, kAddedOrRemoved, StillThere<kCredentialsSecretRef>},
    {"spec.objectStore", kCaSecretRef, kAddedOrRemoved, StillThere<kCaSecretRef>},
    {"spec.objectStore.region", "", kImmutable, IsUnchanged},
    {"spec.objectStore.pathStyle", "", kImmutable, IsUnchanged},
    {"spec.objectStore", "", "set uri or bucket, not both",
     [](const Json& self, const Json*) { return !Has(self, "uri") || !Has(self, "bucket"); }},
    {"spec.objectStore", "", "endpoint needs bucket",
     [](const Json& self, const Json*) { return !Has(self, "endpoint") || Has(self, "bucket"); }},
    {"spec.checkpoint", kResumeFrom, kImmutable, Unchanged<kResumeFrom>},
};

}  // namespace

std::span<const JobRule> JobRules() {
  static const std::vector<JobRule> rules = [] {
    std::vector<JobRule> all(std::begin(kRules), std::end(kRules));
    all.insert(all.end(), DatasetRules().begin(), DatasetRules().end());
    return all;
  }();
  return rules;
}

void CheckJobRules(const Json& object, const Json* old, std::vector<FieldError>* errors) {
  for (const JobRule& rule : JobRules()) {
    VisitPath(
        object, old, "", rule.path,
        [&](const Json& self, const Json* before, const std::string& path) {
          if (rule.holds(self, before)) return;
          errors->push_back({*rule.field == '\0' ? path : path + "." + rule.field, rule.message});
        });
  }
}

}  // namespace lambdadnn
