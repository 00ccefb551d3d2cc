// SPDX-License-Identifier: Apache-2.0
// A group of functions as Knative's objects: pure builders, no I/O. One serving.knative.dev/v1
// Service per group, of a fixed scale, that the cluster's own network alone reaches; it is created
// once and never written again, since any change of its template would replace every pod.
//
// With spec.addressing Service each function has a Service of its own with one pod: load
// balancing over several pods would send a slice to another rank's pod.
#pragma once

#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "operator/cluster_view/node_capacity.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {

// How many pods a revision has, and its PodAutoscaler after it.
inline constexpr const char* kMinScaleAnnotation = "autoscaling.knative.dev/min-scale";
inline constexpr const char* kMaxScaleAnnotation = "autoscaling.knative.dev/max-scale";
inline constexpr const char* kInitialScaleAnnotation = "autoscaling.knative.dev/initial-scale";
struct KnativeOptions {
  // Images of functions of jobs whose spec.podTemplate names none.
  FunctionImages images = {};
  // Of the queue-proxy in each pod: explicit, so that quotas and limit ranges add nothing.
  int queue_proxy_milli_cpu = 25;
  int queue_proxy_milli_cpu_limit = 0;  // 0 = none
  int queue_proxy_memory_mib = 64;
  // Knative gives a revision up when no pod was ready for this long.
  int progress_deadline_seconds = 600;
  // What pods pull images with beside what their job names, in place of their account's.
  std::vector<std::string> pull_secrets = {};
};

// Of the queue-proxy where a quota wants a limit of CPU.
inline constexpr int kQueueProxyMilliCpuLimit = 100;
// What the queue-proxy requests beside each function.
PodResources SidecarOf(const KnativeOptions& options);

// What the group is made of: itself, or with addressing Service its members, one function each.
std::vector<FunctionGroup> ServicesOf(const FunctionGroup& group);
// At most 52 characters, so that Knative's own names ("NAME-00001-deployment-…") fit as labels; a
// long job's name is cut and told apart by a hash.
std::string KnativeServiceName(const FunctionGroup& group);
// core/v1 Secret of the same name: the group's environment (its key and the store's credentials),
// never part of the Service.
Json EnvironmentSecret(const FunctionGroup& group);
// kFailedPrecondition when neither the job nor the operator names an image. `account` = what the
// pods run as where the job names none; empty = the namespace's default.
Result<Json> KnativeService(const FunctionGroup& group, const KnativeOptions& options,
                            const std::string& account = "");

}  // namespace lambdadnn
