// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/node_check.h"

#include "common/json/json_path.h"
#include "operator/kube/list_all.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

using Level = CheckFinding::Level;

constexpr const char* kArchitecture = "amd64";
constexpr const char* kSubject = "nodes";

std::string ArchitectureOf(const Json& node) {
  const Json* found = FindPath(node, {"status", "nodeInfo", "architecture"});
  return found != nullptr && found->is_string() ? found->get<std::string>() : "unknown";
}

}  // namespace

CheckFinding CheckNodes(KubeClient& kube) {
  const Result<KubeList> nodes = ListAll(kube, NodeType(), "");
  if (!nodes.ok()) {
    return {Level::kGood, kSubject, "cannot be judged: " + nodes.status().message()};
  }
  const size_t all = nodes->items.size();
  size_t fitting = 0;
  std::string example;
  for (const Json& node : nodes->items) {
    const std::string architecture = ArchitectureOf(node);
    if (architecture == kArchitecture) {
      ++fitting;
    } else if (example.empty()) {
      example = NameOf(node).name + " is " + architecture;
    }
  }
  if (fitting == all) {
    return {Level::kGood, kSubject,
            all == 0 ? "there are none" : "are " + std::to_string(all) + ", all amd64"};
  }
  if (fitting == 0) {
    return {Level::kMissing, kSubject,
            "none is amd64 (" + example + "), and images of lambdadnn are; add amd64 nodes"};
  }
  return {Level::kWarning, kSubject,
          std::to_string(all - fitting) + " of " + std::to_string(all) + " are not amd64 (" +
              example +
              "), as images of lambdadnn are; give jobs spec.podTemplate.spec.nodeSelector "
              "{kubernetes.io/arch: amd64}"};
}

}  // namespace lambdadnn
