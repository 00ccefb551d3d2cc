// SPDX-License-Identifier: Apache-2.0
// The values of spec.backend and the capabilities of each platform. Other code asks for the kind
// and never compares names. server/backend_factory.h has how the operator opens each of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lambdadnn {

enum class BackendKind { kLocal, kKnative, kOpenFaas };

// Capabilities of a platform that other code depends on.
struct BackendCapabilities {
  // The CPU quota of a function can change while it runs.
  bool changes_cpu = false;
  // Functions are pods: their logs are read at the API server, and they share neither files nor
  // addresses with the operator.
  bool pods = false;
  // Each job's pods lie in its own namespace, with an account and a network policy of their own.
  bool isolates_jobs = false;
  // Functions count against quotas of the job's namespace: where EnsureGroup fails with
  // kResourceExhausted, one of them is used up.
  bool quotas = false;
  // The operator reaches each function at an address of its own, at any port: functions show their
  // job's certificate there.
  bool tls = false;
  // What is between the operator and a function passes an answer on once it is whole, and ends long
  // ones: a slice's lines are asked for a moment at a time.
  bool buffers_answers = false;
  // Nobody deletes functions whose job's object is gone: a deleted job stays until they are.
  bool keeps_orphans = false;
  // Functions can have GPUs.
  bool gives_gpus = false;
  // The cluster has a say in what functions may take (ClusterBound).
  bool cluster_limits = false;
};

// All of them, as the CRD lists them.
std::vector<BackendKind> BackendKinds();
// As spec.backend and --backend have it.
const std::string& BackendName(BackendKind kind);
// Nothing for another name: a job may be of a newer operator.
std::optional<BackendKind> FindBackend(std::string_view name);
const BackendCapabilities& CapabilitiesOf(BackendKind kind);

}  // namespace lambdadnn
