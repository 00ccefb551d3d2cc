// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/node_check.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/json/json_path.h"
#include "operator/kube/list_all.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

using Level = CheckFinding::Level;

constexpr std::array<std::string_view, 2> kArchitectures = {"amd64", "arm64"};
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
  // The nodes of each architecture, and one of them.
  std::map<std::string, std::pair<size_t, std::string>> found;
  for (const Json& node : nodes->items) {
    auto& [count, example] = found[ArchitectureOf(node)];
    if (count++ == 0) example = NameOf(node).name;
  }
  std::string fitting;  // the architecture of most nodes that there are images for
  std::vector<std::string> parts;
  for (const auto& [architecture, nodes_of] : found) {
    parts.push_back(std::to_string(nodes_of.first) + " " + architecture + " (" + nodes_of.second +
                    ")");
    const bool fits = std::ranges::find(kArchitectures, architecture) != kArchitectures.end();
    if (fits && (fitting.empty() || nodes_of.first > found[fitting].first)) fitting = architecture;
  }
  if (found.empty()) return {Level::kGood, kSubject, "there are none"};
  if (fitting.empty()) {
    return {Level::kMissing, kSubject,
            "are " + Join(parts, ", ") +
                ", and images of lambdadnn are for amd64 and arm64; add such nodes"};
  }
  if (found.size() == 1) {
    return {Level::kGood, kSubject,
            "are " + std::to_string(found[fitting].first) + ", all " + fitting};
  }
  return {Level::kWarning, kSubject,
          "are " + Join(parts, ", ") +
              ", and the workers of a job compute the same bits on one architecture only; give "
              "jobs spec.podTemplate.spec.nodeSelector {kubernetes.io/arch: " +
              fitting + "}"};
}

}  // namespace lambdadnn
