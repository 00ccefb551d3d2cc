// SPDX-License-Identifier: Apache-2.0
// Conditions as the Kubernetes API keeps them: a list with one entry per type, whose
// lastTransitionTime moves only when the status does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/api/job.h"
#include "operator/api/reason.h"

namespace lambdadnn {

inline constexpr const char* kConditionAccepted = "Accepted";
inline constexpr const char* kConditionProvisioned = "Provisioned";
inline constexpr const char* kConditionReady = "Ready";
inline constexpr const char* kConditionRunning = "Running";
inline constexpr const char* kConditionSuspended = "Suspended";
inline constexpr const char* kConditionDegraded = "Degraded";
inline constexpr const char* kConditionComplete = "Complete";
inline constexpr const char* kConditionFailed = "Failed";
// As of batch/v1: the outcome is decided, the ending (functions, objects) is still under way.
inline constexpr const char* kConditionSuccessCriteriaMet = "SuccessCriteriaMet";
inline constexpr const char* kConditionFailureTarget = "FailureTarget";
// As kstatus reads it (sigs.k8s.io/cli-utils): True = nothing happens any more until someone acts.
// Only there when it is True.
inline constexpr const char* kConditionStalled = "Stalled";

// False = functions do not tell each other what lies in the store (docs/operations.md). Only there
// once that was so.
inline constexpr const char* kConditionPeersConnected = "PeersConnected";

Condition MakeCondition(const std::string& type, bool status, Reason reason,
                        const std::string& message);

const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);
// True when the condition is there and its status is "True".
bool IsConditionTrue(const std::vector<Condition>& conditions, std::string_view type);

const Condition* FindCondition(const Job& job, std::string_view type);
bool HasCondition(const Job& job, std::string_view type);  // status "True"
bool IsFinished(const Job& job);                           // Complete or Failed
bool IsEnding(const Job& job);  // how it ends is decided, whether or not it has ended

// Sets the entry of condition.type; condition.last_transition_time is ignored: it stays when the
// status does, and becomes `now` otherwise. Returns whether anything changed. A message longer than
// the schema allows is cut.
bool SetCondition(std::vector<Condition>* conditions, Condition condition, WallTime now);

}  // namespace lambdadnn
