// SPDX-License-Identifier: Apache-2.0
// What a job says of the pods of its functions: spec.podTemplate, whose fields have Kubernetes'
// names and meaning, and spec.addressing. Plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

// How functions are reached: at the pods' own addresses, or through the cluster's ingress.
enum class Addressing { kPod, kService };
template <>
inline constexpr auto kEnumNames<Addressing> = EnumNameTable("Pod", "Service");

// Whether functions of a job connect to each other, and whether over TLS.
enum class PeerChannelMode { kTls, kPlain, kNone };
template <>
inline constexpr auto kEnumNames<PeerChannelMode> = EnumNameTable("TLS", "Plain", "None");

// Settings of the container of one program; the lists are as in a pod.
struct ContainerTemplate {
  std::string name = {};   // ProgramName of what it runs
  std::string image = {};  // empty = the operator's
  Json env = Json::array();
  Json resources = Json::object();  // requests and limits, beside the planner's cpu and memory
  Json volume_mounts = Json::array();
  friend bool operator==(const ContainerTemplate&, const ContainerTemplate&) = default;
};

// Empty fields are those that the job leaves out. Free parts are as in a pod.
struct PodTemplate {
  std::map<std::string, std::string> labels = {};
  std::map<std::string, std::string> annotations = {};
  std::string service_account_name = {};
  std::vector<std::string> image_pull_secrets = {};  // names of Secrets
  std::map<std::string, std::string> node_selector = {};
  Json tolerations = Json::array();
  Json affinity = Json::object();
  std::string priority_class_name = {};
  std::string runtime_class_name = {};
  std::string scheduler_name = {};
  Json topology_spread_constraints = Json::array();
  Json volumes = Json::array();
  std::vector<ContainerTemplate> containers = {};
  // Of workers alone, beside the two above.
  struct Workers {
    std::map<std::string, std::string> node_selector = {};
    Json tolerations = Json::array();
    friend bool operator==(const Workers&, const Workers&) = default;
  } workers = {};
  friend bool operator==(const PodTemplate&, const PodTemplate&) = default;
};

// The settings of the container with this name; those of one without any where there are none.
const ContainerTemplate& ContainerOf(const PodTemplate& pods, std::string_view name);

// What a worker's pods are to be: with what is said of workers alone in its place.
PodTemplate PodsOfWorkers(PodTemplate pods);

// Of spec.podTemplate. Problems are reported under `path`.
PodTemplate DecodePodTemplate(const Json& json, const std::string& path,
                              std::vector<FieldError>* errors);
Json EncodePodTemplate(const PodTemplate& pods);

}  // namespace lambdadnn
