// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/loop/snapshot_json.h"

#include "common/base/quantity.h"
#include "operator/api/job_codec.h"

namespace lambdadnn {
namespace {

const char* PhaseName(FunctionPhase phase) {
  switch (phase) {
    case FunctionPhase::kPending:
      return "Pending";
    case FunctionPhase::kReady:
      return "Ready";
    case FunctionPhase::kTerminating:
      return "Terminating";
    case FunctionPhase::kGone:
      return "Gone";
  }
  return "";
}

const char* PhaseName(SlicePhase phase) {
  switch (phase) {
    case SlicePhase::kStarting:
      return "Starting";
    case SlicePhase::kRunning:
      return "Running";
    case SlicePhase::kEnded:
      return "Ended";
    case SlicePhase::kLost:
      return "Lost";
    case SlicePhase::kRefused:
      return "Refused";
  }
  return "";
}

Json InstanceJson(const InstanceFact& fact) {
  Json json = {{"uid", fact.instance.uid},
               {"group", fact.instance.group},
               {"phase", PhaseName(fact.instance.phase)},
               {"address", fact.instance.endpoint.Text()},
               {"reason", fact.instance.Why()}};
  if (fact.fingerprint.has_value()) {
    json["isa"] = fact.fingerprint->isa;
    json["libtorch"] = fact.fingerprint->libtorch;
  }
  if (!fact.unreachable.ok()) json["unreachable"] = fact.unreachable.ToString();
  return json;
}

Json SliceJson(const SliceFact& slice, const Memo& memo, Instant now) {
  Json json = {{"invocation", slice.invocation},
               {"role", slice.role.Name()},
               {"instance", slice.instance_uid},
               {"phase", PhaseName(slice.phase)},
               {"incarnation", slice.incarnation},
               {"firstIteration", slice.first_iteration},
               {"heardSecondsAgo", ToSeconds(now - slice.last_heard)},
               {"stopSent", memo.stops.contains(slice.invocation)}};
  if (slice.last.has_value()) json["iteration"] = slice.last->iteration;
  if (slice.record != nullptr) json["nextIteration"] = slice.record->next_iteration;
  if (!slice.error.ok()) json["error"] = slice.error.ToString();
  return json;
}

// What each action is about.
struct Describe {
  Json operator()(const AddFinalizer&) const { return {{"action", "AddFinalizer"}}; }
  Json operator()(const RemoveFinalizer&) const { return {{"action", "RemoveFinalizer"}}; }
  Json operator()(const WriteDecision& a) const {
    Json conditions = Json::array();
    for (const Condition& condition : a.conditions) {
      conditions.push_back(condition.type + "=" + condition.status + " " + condition.reason);
    }
    return {{"action", "WriteDecision"}, {"why", a.why}, {"conditions", conditions}};
  }
  Json operator()(const DeleteJobObject&) const { return {{"action", "DeleteJobObject"}}; }
  Json operator()(const EnsurePlannedGroups&) const { return {{"action", "EnsurePlannedGroups"}}; }
  Json operator()(const EnsureProfileGroup& a) const {
    return {{"action", "EnsureProfileGroup"},
            {"count", a.count},
            {"memory", FormatMemoryMib(a.memory_mib)}};
  }
  Json operator()(const DeleteAllGroups& a) const {
    Json json = {{"action", "DeleteAllGroups"}};
    if (a.retry_seconds.has_value()) json["retrySeconds"] = *a.retry_seconds;
    return json;
  }
  Json operator()(const DeleteOneGroup& a) const {
    return {{"action", "DeleteOneGroup"}, {"group", a.group}};
  }
  Json operator()(const DeleteFunction& a) const {
    return {{"action", "DeleteFunction"}, {"uid", a.uid}, {"why", a.why}};
  }
  Json operator()(const SetFunctionCpu& a) const {
    return {{"action", "SetFunctionCpu"}, {"uid", a.uid}, {"milliCpu", a.milli_cpu}};
  }
  Json operator()(const AskFingerprint& a) const {
    return {{"action", "AskFingerprint"}, {"uid", a.uid}};
  }
  Json operator()(const StartTrainingSlice& a) const {
    return {
        {"action", "StartTrainingSlice"}, {"role", a.role.Name()}, {"instance", a.instance_uid}};
  }
  Json operator()(const StartProfileSlice& a) const {
    return {{"action", "StartProfileSlice"},
            {"rank", a.rank},
            {"instance", a.instance_uid},
            {"memory", FormatMemoryMib(a.memory_mib)}};
  }
  Json operator()(const EndProfiling&) const { return {{"action", "EndProfiling"}}; }
  Json operator()(const StopSlice& a) const {
    return {{"action", "StopSlice"}, {"invocation", a.invocation}, {"graceful", a.graceful}};
  }
  Json operator()(const ForgetSlice& a) const {
    return {{"action", "ForgetSlice"}, {"invocation", a.invocation}};
  }
  Json operator()(const CheckAdmission&) const { return {{"action", "CheckAdmission"}}; }
  Json operator()(const ReadMeasurements&) const { return {{"action", "ReadMeasurements"}}; }
  Json operator()(const DropKeptProfile& a) const {
    return {{"action", "DropKeptProfile"}, {"why", a.why}};
  }
  Json operator()(const ImportResumed&) const { return {{"action", "ImportResumed"}}; }
  Json operator()(const LookIntoPlaceOfId&) const { return {{"action", "LookIntoPlaceOfId"}}; }
  Json operator()(const ClaimPlace&) const { return {{"action", "ClaimPlace"}}; }
  Json operator()(const ReadRecords&) const { return {{"action", "ReadRecords"}}; }
  Json operator()(const LookUpCheckpoint&) const { return {{"action", "LookUpCheckpoint"}}; }
  Json operator()(const CheckResults&) const { return {{"action", "CheckResults"}}; }
  Json operator()(const NoteDriftLook& a) const {
    return {{"action", "NoteDriftLook"}, {"iteration", a.look.iteration}};
  }
  Json operator()(const WriteReport&) const { return {{"action", "WriteReport"}}; }
  Json operator()(const CleanUpStore& a) const {
    return {{"action", "CleanUpStore"}, {"keepCheckpoints", a.keep_checkpoints}};
  }
  Json operator()(const DeleteJobKey&) const { return {{"action", "DeleteJobKey"}}; }
};

}  // namespace

Json SnapshotToJson(const JobSnapshot& snapshot) {
  const Observations& observed = *snapshot.observations;
  const Memo& memo = *snapshot.memo;
  Json instances = Json::array();
  for (const auto& [uid, fact] : observed.instances) instances.push_back(InstanceJson(fact));
  Json slices = Json::array();
  for (const auto& [invocation, slice] : observed.slices) {
    slices.push_back(SliceJson(slice, memo, snapshot.now));
  }
  Json json = {{"wall", FormatRfc3339(snapshot.wall)},
               {"leaderEpoch", snapshot.options->leader_epoch},
               {"generation", snapshot.job.metadata.generation},
               {"status", EncodeStatus(snapshot.job.status)},
               {"instancesKnown", observed.instances_known},
               {"instances", std::move(instances)},
               {"slices", std::move(slices)},
               {"iteration", observed.iteration},
               {"startAttempts", memo.start_attempts}};
  if (const QueueView& queue = snapshot.observations->queue; queue.limited) {
    json["queue"] = {{"capacity", DescribeReservation(queue.capacity, queue.capacity)},
                     {"taken", DescribeReservation(queue.taken, queue.capacity)},
                     {"ahead", queue.turn.ahead},
                     {"before", DescribeReservation(queue.turn.before, queue.capacity)},
                     {"undecided", queue.undecided},
                     {"known", queue.known}};
  }
  if (!snapshot.unreadable.ok()) json["unreadable"] = snapshot.unreadable.ToString();
  if (!snapshot.problem.ok()) json["problem"] = snapshot.problem.ToString();
  if (!snapshot.reach.ok()) json["reach"] = snapshot.reach.ToString();
  if (!snapshot.pods.ok()) json["pods"] = snapshot.pods.ToString();
  if (!memo.start_error.ok()) json["startError"] = memo.start_error.ToString();
  if (!memo.key_error.ok()) json["keyError"] = memo.key_error.ToString();
  if (!memo.release.error.ok()) json["releaseError"] = memo.release.error.ToString();
  if (!memo.cleanup.error.ok()) json["cleanupError"] = memo.cleanup.error.ToString();
  if (!memo.credentials_refused.ok()) {
    json["credentialsRefused"] = memo.credentials_refused.ToString();
  }
  if (!memo.dataset_refused.ok()) json["datasetRefused"] = memo.dataset_refused.ToString();
  if (!memo.module_refused.ok()) json["moduleRefused"] = memo.module_refused.ToString();
  if (memo.admission.has_value()) json["admission"] = memo.admission->ToString();
  return json;
}

Json ActionsToJson(const std::vector<Action>& actions) {
  Json json = Json::array();
  for (const Action& action : actions) json.push_back(std::visit(Describe{}, action));
  return json;
}

}  // namespace lambdadnn
