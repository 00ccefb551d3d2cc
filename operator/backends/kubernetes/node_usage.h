// SPDX-License-Identifier: Apache-2.0
// The nodes of a cluster and what pods request on them: for a program that runs once, listed; for
// the operator, watched, so that a large cluster is not listed again and again. Pods are summed up
// or reduced to their requests, never kept whole.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/cluster_view/node_capacity.h"
#include "operator/kube/informer.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

struct NodeUsage {
  // Nodes that take pods; absent = not known.
  std::optional<std::vector<NodeCapacity>> nodes = {};
  // By node: requests of pods that are no functions of ours. Empty where pods may not be read.
  std::map<std::string, PodResources> others = {};
  // By namespace: requests of our functions, on a node or not yet; absent where pods may not be
  // read.
  std::optional<std::map<std::string, PodResources>> own = {};
  // One sentence for each thing that could not be read.
  std::vector<std::string> unknown = {};
};

// Whether the object is forbidden or absent, so that a retry would not help soon.
bool MayNotRead(const Status& status);

// `namespaces` of the functions that are ours; pods of others are pods like any others. Empty =
// all. Errors are those of a server that does not answer: what is forbidden is in `unknown`.
Result<NodeUsage> ListNodeUsage(KubeClient& kube, const std::vector<std::string>& namespaces);

// The same from two watches. Thread-safe.
class WatchedNodeUsage {
 public:
  // Both outlive this. The watches begin.
  WatchedNodeUsage(KubeClient& kube, Runtime& runtime, std::vector<std::string> namespaces);

  // Takes time in proportion to the pods of the cluster. kUnavailable until all are listed once.
  Result<NodeUsage> Read() const;

  // NodeKindOf the node of this name; nullopt = the node is not known, or not yet.
  std::optional<std::string> NodeKind(const std::string& node) const;

  // What is kept of a pod: a pod with the same name, labels, node and phase, and one sum of its
  // requests. Exposed for tests.
  static void ReducePod(Json* pod);

 private:
  const std::vector<std::string> namespaces_;
  Informer nodes_;
  Informer pods_;
};

}  // namespace lambdadnn
