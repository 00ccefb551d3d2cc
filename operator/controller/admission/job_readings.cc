// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/job_readings.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "common/json/json_path.h"
#include "common/json/unknown_field.h"
#include "operator/api/conditions.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_id.h"
#include "operator/api/job_validation.h"
#include "operator/api/removed_fields.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

// Complete or Failed, as IsFinished; "" = it has not finished.
std::string EndOf(const Json& object) {
  const Json* const conditions = FindPath(object, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return "";
  for (const Json& condition : *conditions) {
    const std::string type = TextAt(condition, {"type"});
    const bool ends = type == kConditionComplete || type == kConditionFailed;
    if (ends && TextAt(condition, {"status"}) == "True") return type;
  }
  return "";
}

JobReading OutlineOf(const Json& object, std::string end) {
  JobReading outline;
  outline.version = ObjectVersionOf(object);
  outline.job.metadata.uid = outline.version.uid;
  outline.job.metadata.creation_timestamp = MetadataText(object, "creationTimestamp");
  outline.job.status.start_time = TextAt(object, {"status", "startTime"});
  Condition condition;
  condition.type = std::move(end);
  condition.status = "True";
  outline.job.status.conditions.push_back(std::move(condition));
  return outline;
}

bool IsOfSameGeneration(const JobReading& a, const Job& b) {
  return b.metadata.generation != 0 && a.job.metadata.uid == b.metadata.uid &&
         a.job.metadata.generation == b.metadata.generation;
}

// With what is wrong with its spec, if anything is.
Status OfEarlierApi(const Job& job, const Status& problem) {
  const ObjectMeta& metadata = job.metadata;
  return InvalidArgumentError(
      "the job began with an earlier version of the API; its checkpoints are kept in the folder " +
      metadata.namespace_name + "/" + metadata.uid +
      " of its store, from which spec.checkpoint.resumeFrom of a new job goes on" +
      (problem.ok() ? "" : ": " + problem.message()));
}

bool IsNewer(const FieldError& error) {
  return error.path.starts_with("spec.") && IsUnknownField(error) && !IsRemovedField(error.path);
}

}  // namespace

JobReading ReadJob(const Json& object, const JobReading* before) {
  std::vector<FieldError> errors;
  JobReading reading;
  reading.version = ObjectVersionOf(object);
  reading.job = before != nullptr && before->whole ? DecodeJob(object, before->job, &errors)
                                                   : DecodeJob(object, &errors);
  reading.whole = errors.empty();
  JobProblems problems = SortProblems(errors);
  const bool of_earlier_api = IsOfEarlierApi(object);
  const bool of_earlier_object = ForgetEarlierObject(&reading.job);
  if (of_earlier_api || of_earlier_object) problems.remembered.clear();
  if (of_earlier_api) reading.job.status.execution.functions.clear();  // nobody will continue it
  // Passes go on until the job is deleted, and they calculate with the plan: it must be valid.
  std::optional<Plan>& plan = reading.job.status.plan;
  if (!errors.empty() && plan.has_value() && !plan->Validate().ok()) plan.reset();
  if (before != nullptr && IsOfSameGeneration(*before, reading.job)) {
    reading.invalid = before->invalid;
  } else {
    Json written = object;
    written.erase("status");
    std::vector<FieldError> invalid = ValidateJob(written);
    std::erase_if(invalid, IsNewer);
    reading.invalid = ToStatus(invalid);
  }
  const auto newer =
      std::stable_partition(problems.spec.begin(), problems.spec.end(), std::not_fn(IsNewer));
  const bool is_over = IsEnding(reading.job) || IsFinished(reading.job);
  if (!of_earlier_api && !is_over) reading.newer = ToStatus({newer, problems.spec.end()});
  problems.spec.erase(newer, problems.spec.end());
  // It names every problem, in the words of the API.
  reading.problem = reading.invalid.ok() ? ToStatus(problems.spec) : reading.invalid;
  if (of_earlier_api) reading.problem = OfEarlierApi(reading.job, reading.problem);
  reading.spec_read = problems.spec.empty() && !of_earlier_api;
  reading.unreadable = ToStatus(problems.remembered);
  if (reading.unreadable.ok()) reading.unreadable = reading.newer;
  reading.passed_over = std::move(problems.passed_over);
  return reading;
}

std::shared_ptr<const JobReading> JobReadings::Find(const ObjectName& name,
                                                    const ObjectVersion& version) const {
  const std::lock_guard lock(mutex_);
  const auto found = readings_.find(name);
  return found != readings_.end() && found->second->version == version ? found->second : nullptr;
}

std::shared_ptr<const JobReading> JobReadings::Read(const ObjectName& name, const Json& object) {
  std::shared_ptr<const JobReading> before;
  {
    const std::lock_guard lock(mutex_);
    const auto found = readings_.find(name);
    if (found != readings_.end()) before = found->second;
  }
  auto reading = std::make_shared<const JobReading>(ReadJob(object, before.get()));
  const std::lock_guard lock(mutex_);
  ++decoded_;
  if (IsFinished(reading->job)) {
    readings_.erase(name);
  } else {
    readings_[name] = reading;
  }
  return reading;
}

std::shared_ptr<const JobReading> JobReadings::Get(const ObjectName& name, Detail detail) {
  const std::optional<ObjectVersion> version = cache_.VersionOf(name);
  if (version.has_value()) {
    if (auto kept = Find(name, *version); kept != nullptr) return kept;
  }
  const std::shared_ptr<const Json> object = version.has_value() ? cache_.Get(name) : nullptr;
  if (object == nullptr) {
    const std::lock_guard lock(mutex_);
    readings_.erase(name);
    return nullptr;
  }
  std::string end = detail == Detail::kOutlineOfFinished ? EndOf(*object) : "";
  if (end.empty()) return Read(name, *object);
  return std::make_shared<const JobReading>(OutlineOf(*object, std::move(end)));
}

size_t JobReadings::kept() const {
  const std::lock_guard lock(mutex_);
  return readings_.size();
}

size_t JobReadings::decoded() const {
  const std::lock_guard lock(mutex_);
  return decoded_;
}

}  // namespace lambdadnn
