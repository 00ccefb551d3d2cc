// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/pod_instances.h"

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"
#include "common/json/json_path.h"
#include "operator/backends/kubernetes/pod_address.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"
#include "operator/resources/openfaas_function.h"

namespace lambdadnn {
namespace {

constexpr const char* kPodDeleted = "Deleted";
// As a shell counts the end by SIGKILL.
constexpr int kKilledExitCode = 128 + 9;

// The value below, or null.
const Json& At(const Json& value, const char* field) {
  static const Json null;
  if (!value.is_object()) return null;
  const auto found = value.find(field);
  return found == value.end() ? null : *found;
}

// The element of a list whose `field` is `text`, or null.
const Json& Named(const Json& list, const char* field, std::string_view text) {
  static const Json null;
  if (!list.is_array()) return null;
  for (const Json& element : list) {
    if (TextField(element, field) == text) return element;
  }
  return null;
}

const Json& FunctionStatus(const Json& pod) {
  return Named(At(At(pod, "status"), "containerStatuses"), "name", FunctionContainerOf(pod));
}

int RestartsOf(const Json& container) {
  const Json& count = At(container, "restartCount");
  return count.is_number_integer() ? count.get<int>() : 0;
}

// ContainerStateTerminated as the backends name ends: "OOMKilled", "Killed", "Exited 2".
void ReadEnd(const Json& terminated, FunctionInstance* instance) {
  const std::string reason = TextField(terminated, "reason");
  const Json& code = At(terminated, "exitCode");
  const int exit_code = code.is_number_integer() ? code.get<int>() : 0;
  if (reason == "OOMKilled") {
    instance->end = FunctionEnd::kOutOfMemory;
    instance->reason = reason;
  } else if (exit_code == kKilledExitCode) {
    instance->end = FunctionEnd::kByPlatform;
    instance->reason = "Killed";
  } else {
    instance->end = FunctionEnd::kByItself;
    instance->reason = "Exited " + std::to_string(exit_code);
  }
}

// Why a pod is not ready yet, with the platform's message; nothing = no problem, just not yet.
void ReadPendingReason(const Json& pod, FunctionInstance* instance) {
  const Json& scheduled = Named(At(At(pod, "status"), "conditions"), "type", "PodScheduled");
  const bool is_scheduled = TextField(scheduled, "status") != "False";
  const Json& waiting = At(At(FunctionStatus(pod), "state"), "waiting");
  const Json& why = is_scheduled ? waiting : scheduled;
  const std::string reason = TextField(why, "reason");
  const bool starts =
      reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing";
  if (is_scheduled && starts) return;
  instance->reason = reason;
  instance->message = TextField(why, "message");
}

std::optional<WallTime> ReadTime(const std::string& text) {
  WallTime time;
  return ParseRfc3339(text, &time) ? std::optional(time) : std::nullopt;
}

// At least 0, and of any two times that an object may name.
double SecondsBetween(WallTime begin, WallTime end) {
  return std::max(0.0, ToSeconds(end.time_since_epoch()) - ToSeconds(begin.time_since_epoch()));
}

double ColdStartSeconds(const Json& pod, const Json& ready) {
  const auto created = ReadTime(MetadataText(pod, "creationTimestamp"));
  const auto since = ReadTime(TextField(ready, "lastTransitionTime"));
  return created && since ? SecondsBetween(*created, *since) : 0;
}

struct RunTimes {
  std::optional<WallTime> begin;
  std::optional<WallTime> end;
};

RunTimes TimesOf(const Json& pod, int run) {
  const Json& container = FunctionStatus(pod);
  const Json& state = At(container, "state");
  const Json& before = At(At(container, "lastState"), "terminated");
  const bool is_over = run < RestartsOf(container) || IsCrashLooping(pod);
  const Json& ended = is_over ? before : At(state, "terminated");
  RunTimes times;
  times.end = ReadTime(TextField(ended, "finishedAt"));
  if (run == 0) {
    times.begin = ReadTime(MetadataText(pod, "creationTimestamp"));
  } else {
    times.begin =
        ReadTime(TextField(ended.is_object() ? ended : At(state, "running"), "startedAt"));
    // It waits for its start.
    if (!times.begin && !is_over) times.begin = ReadTime(TextField(before, "finishedAt"));
  }
  return times;
}

std::string InstanceUid(const Json& pod, int restarts) {
  return UidOf(pod) + "." + std::to_string(restarts);
}

void ReadPhase(const Json& pod, FunctionInstance* instance) {
  const Json& status = At(pod, "status");
  const Json& container = FunctionStatus(pod);
  const Json& terminated = At(At(container, "state"), "terminated");
  const std::string phase = TextField(status, "phase");
  const bool has_ended = phase == "Failed" || phase == "Succeeded";
  const Json& ready = Named(At(status, "conditions"), "type", "Ready");
  if (IsBeingDeleted(pod)) {
    // One whose containers have all ended counts no more where others are scheduled.
    instance->phase = has_ended ? FunctionPhase::kGone : FunctionPhase::kTerminating;
    instance->reason = kPodDeleted;
  } else if (has_ended) {
    // Evicted, or its node is gone: the pod never runs again.
    instance->phase = FunctionPhase::kGone;
    const std::string reason = TextField(status, "reason");
    ReadEnd(terminated, instance);
    if (!reason.empty()) {
      instance->end = FunctionEnd::kByPlatform;
      instance->reason = reason;
    }
    instance->last_log_line = TextField(status, "message");
  } else if (terminated.is_object()) {
    instance->phase = FunctionPhase::kGone;
    ReadEnd(terminated, instance);
  } else if (IsCrashLooping(pod)) {
    instance->phase = FunctionPhase::kGone;
    ReadEnd(At(At(container, "lastState"), "terminated"), instance);
  } else if (TextField(ready, "status") == "True" && !instance->endpoint.host.empty()) {
    instance->phase = FunctionPhase::kReady;
    instance->cold_start_seconds = ColdStartSeconds(pod, ready);
  } else {
    instance->phase = FunctionPhase::kPending;
    ReadPendingReason(pod, instance);
  }
}

}  // namespace

bool IsCrashLooping(const Json& pod) {
  return TextField(At(At(FunctionStatus(pod), "state"), "waiting"), "reason") == "CrashLoopBackOff";
}

int64_t DeletionGraceSeconds(const Json& pod) {
  const Json& grace = At(At(pod, "metadata"), "deletionGracePeriodSeconds");
  return grace.is_number_integer() ? std::max<int64_t>(0, grace.get<int64_t>()) : 0;
}

bool EndsLater(const Json& pod, int grace_seconds) {
  return DeletionGraceSeconds(pod) > grace_seconds;
}

std::string FunctionContainerOf(const Json& pod) {
  const std::string name = LabelText(pod, kOpenFaasFunctionLabel);
  return name.empty() ? kFunctionContainer : name;
}

ObjectName AccountOf(const Json& pod) {
  return {NameOf(pod).namespace_name, TextAt(pod, {"spec", "serviceAccountName"})};
}

std::string PodUidOf(const std::string& instance_uid) {
  return instance_uid.substr(0, instance_uid.rfind('.'));
}

void TellAges(const Json& pod, WallTime now, std::vector<FunctionInstance>* of_pod) {
  for (FunctionInstance& instance : *of_pod) {
    const RunTimes times = TimesOf(pod, instance.restarts);
    const bool gone = instance.phase == FunctionPhase::kGone;
    if (!times.begin || (gone && !times.end)) continue;
    instance.age_seconds = SecondsBetween(*times.begin, now);
    if (gone) instance.ended_seconds = SecondsBetween(*times.end, now);
  }
}

std::optional<ContainerRun> LogOf(const Json& pod, const std::string& instance_uid) {
  const int restarts = RestartsOf(FunctionStatus(pod));
  if (instance_uid == InstanceUid(pod, restarts)) {
    // It ended, and becomes the run before as soon as the kubelet tries again.
    return IsCrashLooping(pod) ? ContainerRun::kPrevious : ContainerRun::kCurrent;
  }
  const bool kept = restarts > 0 && !IsCrashLooping(pod);
  if (kept && instance_uid == InstanceUid(pod, restarts - 1)) return ContainerRun::kPrevious;
  return std::nullopt;
}

std::vector<FunctionInstance> InstancesOf(const Json& pod, const Endpoint& endpoint) {
  const std::string group = LabelText(pod, kGroupLabel);
  if (group.empty() || UidOf(pod).empty()) return {};
  std::vector<FunctionInstance> of_pod;
  const Json& container = FunctionStatus(pod);
  const int restarts = RestartsOf(container);
  FunctionInstance instance;
  instance.name = NameOf(pod).name;
  instance.host.node = TextAt(pod, {"spec", "nodeName"});
  instance.host.image = TextField(
      Named(At(At(pod, "spec"), "containers"), "name", FunctionContainerOf(pod)), "image");
  instance.group = group;
  const Json& before = At(At(container, "lastState"), "terminated");
  if (restarts > 0 && before.is_object() && !IsCrashLooping(pod)) {
    FunctionInstance last = instance;
    last.uid = InstanceUid(pod, restarts - 1);
    last.phase = FunctionPhase::kGone;
    last.restarts = restarts - 1;
    ReadEnd(before, &last);
    of_pod.push_back(std::move(last));
  }
  instance.uid = InstanceUid(pod, restarts);
  instance.restarts = restarts;
  instance.endpoint = endpoint;
  instance.peer_address = PeerAddressOf(pod);
  ReadPhase(pod, &instance);
  of_pod.push_back(std::move(instance));
  return of_pod;
}

}  // namespace lambdadnn
