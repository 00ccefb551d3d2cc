// SPDX-License-Identifier: Apache-2.0
// Makes and deletes the Knative Services of groups, each with the Secret of its environment.
// Services are read by name, and not again for a moment after they were found correct. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "common/base/runtime.h"
#include "operator/backends/kubernetes/cluster_reader.h"
#include "operator/backends/kubernetes/job_isolation.h"
#include "operator/backends/kubernetes/pod_index.h"
#include "operator/kube/kube_client.h"
#include "operator/resources/function_group.h"
#include "operator/resources/knative_service.h"

namespace lambdadnn {

class ServiceWriter {
 public:
  struct Options {
    KnativeOptions services;
    // A Service that was found correct is not read again for this long.
    double seen_seconds = 2;
  };

  // All outlive this.
  ServiceWriter(KubeClient& kube, Runtime& runtime, Options options, ClusterReader& limits,
                const PodIndex& pods)
      : kube_(kube),
        runtime_(runtime),
        options_(std::move(options)),
        limits_(limits),
        pods_(pods) {}

  // Whether the Services of this group were recently found with this scale.
  bool SeenRight(const FunctionGroup& group) const;
  // Creates missing Services of the group, rescales those with another scale, and deletes those of
  // removed members. kInvalidArgument: the cluster refuses one, with its message;
  // kFailedPrecondition: a user has an object of its name, or its scale is not allowed;
  // kResourceExhausted: a quota refuses its pods.
  Status Ensure(const FunctionGroup& group, const PodIdentity& identity);
  // Forgets what was seen: the next Ensure reads again.
  void LookAgain();
  // With their Secrets.
  Status Delete(const JobIdentity& job, const std::string& group);
  // As the namespace wants them.
  KnativeOptions OptionsIn(const FunctionGroup& group) const;

 private:
  // `group` is one of ServicesOf its group.
  Status EnsureService(const FunctionGroup& group, const PodIdentity& identity);
  Status CreateService(const FunctionGroup& group, const PodIdentity& identity);
  Status CreateSecret(const FunctionGroup& group);
  // Members from this one on, where the group has members.
  Status DeleteFrom(const JobIdentity& job, const std::string& group, int64_t first_member);

  KubeClient& kube_;
  Runtime& runtime_;
  const Options options_;
  ClusterReader& limits_;
  const PodIndex& pods_;
  struct Seen {
    int count = 0;
    Instant at{};
  };
  mutable std::mutex mutex_;
  std::map<std::string, Seen> seen_;  // by job and group; with the mutex
};

}  // namespace lambdadnn
