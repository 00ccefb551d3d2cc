// SPDX-License-Identifier: Apache-2.0
// Allocatable resources of nodes and requests of pods, read from core/v1 objects. Pure. A value
// that cannot be parsed counts as zero and is reported in one sentence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "operator/api/pod_template.h"

namespace lambdadnn {

// As the device plugin of NVIDIA names them.
inline constexpr const char* kGpuResource = "nvidia.com/gpu";

// Requests of pods, or what is free for them.
struct PodResources {
  double memory_mib = 0;
  double milli_cpu = 0;
  double pods = 0;
  double gpus = 0;
  PodResources& operator+=(const PodResources& other);
  friend bool operator==(const PodResources&, const PodResources&) = default;
};
PodResources operator-(const PodResources& a, const PodResources& b);  // never below zero

struct NodeCapacity {
  std::string name;
  PodResources allocatable;
  Json labels = Json::object();
  Json taints = Json::array();
};

// nullopt for a node that takes no new pods (cordoned), or of which nothing can be read.
std::optional<NodeCapacity> ReadNode(const Json& node, std::vector<std::string>* unknown);
// Whether such pods may be put there: by their node selector and tolerations. Affinity is ignored.
bool Admits(const NodeCapacity& node, const PodTemplate& pods);
// Whether pods of some job may be: not on nodes that are not ready or run the control plane.
bool AdmitsSome(const NodeCapacity& node);

// What nodes of equal speed share: the instance type of their cloud, else the model of their CPUs
// as Node Feature Discovery labels it; "" where neither is told.
std::string NodeKindOf(const Json& labels);

// What the scheduler counts of a pod; nothing of one that has ended.
PodResources ReadPodResources(const Json& pod, std::vector<std::string>* unknown);

// A quantity in a list of resources ("memory" in MiB, "cpu" in mCPU, else as it is); 0 without it.
// What is no quantity is told of `what`.
double ReadAmount(const Json* amounts, const std::string& resource, const std::string& what,
                  std::vector<std::string>* unknown);

}  // namespace lambdadnn
