// SPDX-License-Identifier: Apache-2.0
// Index of all our functions' pods by job, from one watch however many jobs there are; also reports
// pods whose deletion is overdue. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/kube/informer.h"
#include "operator/kube/kube_client.h"
#include "operator/resources/function_group.h"

namespace lambdadnn {

class PodIndex {
 public:
  using Pods = std::vector<std::shared_ptr<const Json>>;
  struct Options {
    std::vector<std::string> namespaces = {};  // empty = all
    // Where the pods of all jobs are; empty = each job's in its own namespace.
    std::string place = "";
    // A deleted pod that is still there so long after its grace counts as gone: its node is lost,
    // and what runs there still is fenced like any function that was cut off.
    double lost_node_seconds = 60;
  };

  // Both outlive this. `on_gone` is told of each pod that is no more, after it is forgotten here.
  PodIndex(KubeClient& kube, Runtime& runtime, Options options,
           std::function<void(const ObjectName&)> on_gone = nullptr);
  // The watch begins.
  void Start();

  // kUnavailable until the pods have been listed once.
  Status CheckSynced() const;
  // Why the pods cannot be listed; OK = they can, or nothing is known yet.
  Status Problem() const { return pods_.synced() ? OkStatus() : pods_.Problem(); }
  // All groups when `group` is empty. Pods that a controller made, in the job's own namespace or in
  // Options::place.
  Pods PodsOf(const JobIdentity& job, const std::string& group) const;
  // That of the instance; null = it is gone.
  std::shared_ptr<const Json> PodOf(const JobIdentity& job, const std::string& uid) const;
  // As it is now; null = it is gone.
  std::shared_ptr<const Json> Get(const ObjectName& pod) const { return pods_.cache().Get(pod); }
  bool Knows(const ObjectName& pod) const;
  // Only the kubelet ends a pod's deletion, which that of a lost node never does.
  bool IsOverdue(const Json& pod) const;

 private:
  void Index(const ObjectName& pod);
  void Place(const ObjectName& pod, const Json* object);

  Runtime& runtime_;
  const Options options_;
  const std::function<void(const ObjectName&)> on_gone_;
  mutable std::mutex mutex_;
  // With the mutex:
  std::map<std::string, std::set<ObjectName>> pods_of_job_;  // by the job's uid
  std::map<ObjectName, std::string> job_of_pod_;
  std::map<ObjectName, Instant> deleted_since_;  // first seen so, by this clock
  Informer pods_;                                // last: it calls Index
};

}  // namespace lambdadnn
