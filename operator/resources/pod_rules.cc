// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/pod_rules.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string_view>

#include "common/base/text.h"
#include "common/json/yaml_file.h"

namespace lambdadnn {
namespace {

// A message must stay readable.
constexpr size_t kShownNames = 5;

using NameList = std::vector<std::string>;

struct List {
  const char* name;  // in the file, and in jobs.allowed of the chart
  PodRules::Names PodRules::* names;
  const char* what;
};

constexpr List kImages = {"images", &PodRules::images, "images"};
constexpr List kServiceAccounts = {"serviceAccounts", &PodRules::service_accounts,
                                   "service accounts"};
constexpr List kPriorityClasses = {"priorityClasses", &PodRules::priority_classes,
                                   "priority classes"};
constexpr List kTolerationKeys = {"tolerationKeys", &PodRules::toleration_keys, "keys of taints"};
constexpr List kNodeLabels = {"nodeLabels", &PodRules::node_labels, "labels of nodes"};
constexpr List kAffinityNamespaces = {"affinityNamespaces", &PodRules::affinity_namespaces,
                                      "other namespaces"};
constexpr List kSecrets = {"secrets", &PodRules::secrets, "Secrets"};
constexpr List kRuntimeClasses = {"runtimeClasses", &PodRules::runtime_classes, "runtime classes"};
constexpr List kSchedulers = {"schedulers", &PodRules::schedulers, "schedulers"};
constexpr List kVolumeTypes = {"volumeTypes", &PodRules::volume_types, "types of volumes"};
constexpr List kResources = {"resources", &PodRules::resources, "resources"};
constexpr const List* kLists[] = {&kImages,         &kServiceAccounts, &kPriorityClasses,
                                  &kTolerationKeys, &kNodeLabels,      &kAffinityNamespaces,
                                  &kSecrets,        &kRuntimeClasses,  &kSchedulers,
                                  &kVolumeTypes,    &kResources};

// The functions below gather the names in a value. What is not understood becomes the empty name,
// which only the entry "*" admits: whoever reads the pod may understand more.
constexpr const char* kNotUnderstood = "";

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : kNotUnderstood;
}

std::string TextAt(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) ? TextOf(object[name]) : kNotUnderstood;
}

// Go's decoders also take "secretkeyref" for "secretKeyRef".
bool IsObjectOf(const Json& value, std::initializer_list<std::string_view> members) {
  if (!value.is_object()) return false;
  const auto items = value.items();
  return std::all_of(items.begin(), items.end(), [&](const auto& member) {
    return std::find(members.begin(), members.end(), member.key()) != members.end();
  });
}

template <std::string PodTemplate::* field>
void AddText(const PodTemplate& pods, NameList* names) {
  if (!(pods.*field).empty()) names->push_back(pods.*field);
}

void AddImages(const PodTemplate& pods, NameList* names) {
  for (const ContainerTemplate& container : pods.containers) {
    if (!container.image.empty()) names->push_back(container.image);
  }
}

// Without a key it tolerates every taint.
void AddKeys(const Json& tolerations, NameList* names) {
  for (const Json& toleration : tolerations) names->push_back(TextAt(toleration, "key"));
}
void AddTolerationKeys(const PodTemplate& pods, NameList* names) {
  AddKeys(pods.tolerations, names);
}
void AddTolerationKeysOfWorkers(const PodTemplate& pods, NameList* names) {
  AddKeys(pods.workers.tolerations, names);
}

void AddLabels(const std::map<std::string, std::string>& selector, NameList* names) {
  for (const auto& [key, value] : selector) names->push_back(key);
}
void AddSelectedLabels(const PodTemplate& pods, NameList* names) {
  AddLabels(pods.node_selector, names);
}
void AddLabelsOfWorkers(const PodTemplate& pods, NameList* names) {
  AddLabels(pods.workers.node_selector, names);
}

void AddResources(const PodTemplate& pods, NameList* names) {
  for (const ContainerTemplate& container : pods.containers) {
    for (const Json& amounts : container.resources) {
      if (!amounts.is_object()) return names->push_back(kNotUnderstood);
      for (const auto& [resource, amount] : amounts.items()) names->push_back(resource);
    }
  }
}

// Of a projected volume, each of whose sources is as a volume of that type.
template <typename Visit>
void VisitSources(const Json& projected, NameList* names, const Visit& visit) {
  if (!IsObjectOf(projected, {"sources", "defaultMode"})) return names->push_back(kNotUnderstood);
  if (!projected.contains("sources")) return;
  if (!projected["sources"].is_array()) return names->push_back(kNotUnderstood);
  for (const Json& source : projected["sources"]) {
    if (source.is_object()) {
      visit(source);
    } else {
      names->push_back(kNotUnderstood);
    }
  }
}

void AddVolumeTypes(const PodTemplate& pods, NameList* names) {
  for (const Json& volume : pods.volumes) {
    if (!volume.is_object()) return names->push_back(kNotUnderstood);
    for (const auto& [type, value] : volume.items()) {
      if (type != "name") names->push_back(type);
    }
    if (!volume.contains("projected")) continue;
    VisitSources(volume["projected"], names, [&](const Json& source) {
      for (const auto& [type, value] : source.items()) names->push_back(type);
    });
  }
}

// `members` are all that the reference may have, `name` the one with the Secret's name.
void AddSecretOf(const Json& reference, const char* name,
                 std::initializer_list<std::string_view> members, NameList* names) {
  names->push_back(IsObjectOf(reference, members) ? TextAt(reference, name) : kNotUnderstood);
}

void AddMountedSecrets(const PodTemplate& pods, NameList* names) {
  for (const Json& volume : pods.volumes) {
    if (!IsObjectOf(volume, {"name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral",
                             "persistentVolumeClaim", "projected", "secret"})) {
      names->push_back(kNotUnderstood);
      continue;
    }
    if (volume.contains("secret")) {
      AddSecretOf(volume["secret"], "secretName",
                  {"secretName", "items", "defaultMode", "optional"}, names);
    }
    if (volume.contains("projected")) {
      VisitSources(volume["projected"], names, [&](const Json& source) {
        if (!IsObjectOf(source, {"clusterTrustBundle", "configMap", "downwardAPI", "secret",
                                 "serviceAccountToken"})) {
          names->push_back(kNotUnderstood);
        } else if (source.contains("secret")) {
          AddSecretOf(source["secret"], "name", {"name", "items", "optional"}, names);
        }
      });
    }
    if (!volume.contains("csi")) continue;
    const Json& csi = volume["csi"];
    if (!IsObjectOf(csi,
                    {"driver", "readOnly", "fsType", "volumeAttributes", "nodePublishSecretRef"})) {
      names->push_back(kNotUnderstood);
    } else if (csi.contains("nodePublishSecretRef")) {
      AddSecretOf(csi["nodePublishSecretRef"], "name", {"name"}, names);
    }
  }
}

void AddVariableSecrets(const Json& environment, NameList* names) {
  for (const Json& variable : environment) {
    if (!variable.is_object() || !variable.contains("valueFrom")) continue;
    const Json& from = variable["valueFrom"];
    if (!IsObjectOf(from, {"configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"})) {
      names->push_back(kNotUnderstood);
    } else if (from.contains("secretKeyRef")) {
      AddSecretOf(from["secretKeyRef"], "name", {"name", "key", "optional"}, names);
    }
  }
}

void AddSecretsInEnv(const PodTemplate& pods, NameList* names) {
  for (const ContainerTemplate& container : pods.containers) {
    AddVariableSecrets(container.env, names);
  }
}

void AddLabelsOfTerm(const Json& term, NameList* names) {
  if (!IsObjectOf(term, {"matchExpressions", "matchFields"})) {
    return names->push_back(kNotUnderstood);
  }
  for (const Json& list : term) {
    if (!list.is_array()) return names->push_back(kNotUnderstood);
    for (const Json& expression : list) {
      const bool known = IsObjectOf(expression, {"key", "operator", "values"});
      names->push_back(known ? TextAt(expression, "key") : kNotUnderstood);
    }
  }
}

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

bool IsAffinity(const Json& value) {
  return IsObjectOf(value, {"nodeAffinity", "podAffinity", "podAntiAffinity"});
}

void AddNodeLabels(const PodTemplate& pods, NameList* names) {
  const Json& affinity = pods.affinity;
  if (!IsAffinity(affinity)) return names->push_back(kNotUnderstood);
  if (!affinity.contains("nodeAffinity")) return;
  const Json& nodes = affinity["nodeAffinity"];
  if (!IsObjectOf(nodes, {kRequired, kPreferred})) return names->push_back(kNotUnderstood);
  if (nodes.contains(kRequired)) {
    const Json& required = nodes[kRequired];
    if (!IsObjectOf(required, {"nodeSelectorTerms"})) return names->push_back(kNotUnderstood);
    for (const Json& term : required.value("nodeSelectorTerms", Json::array())) {
      AddLabelsOfTerm(term, names);
    }
  }
  if (!nodes.contains(kPreferred)) return;
  if (!nodes[kPreferred].is_array()) return names->push_back(kNotUnderstood);
  for (const Json& preferred : nodes[kPreferred]) {
    if (!IsObjectOf(preferred, {"weight", "preference"})) {
      names->push_back(kNotUnderstood);
    } else if (preferred.contains("preference")) {
      AddLabelsOfTerm(preferred["preference"], names);
    }
  }
}

void AddNamespacesOfTerm(const Json& term, NameList* names) {
  // Whatever a namespaceSelector selects may change: it counts as not understood.
  if (!IsObjectOf(term, {"labelSelector", "matchLabelKeys", "mismatchLabelKeys", "namespaces",
                         "topologyKey"})) {
    return names->push_back(kNotUnderstood);
  }
  if (!term.contains("namespaces")) return;
  if (!term["namespaces"].is_array()) return names->push_back(kNotUnderstood);
  for (const Json& name : term["namespaces"]) names->push_back(TextOf(name));
}

void AddNamespacesOf(const PodTemplate& pods, const char* kind, NameList* names) {
  if (!IsAffinity(pods.affinity)) return names->push_back(kNotUnderstood);
  if (!pods.affinity.contains(kind)) return;
  const Json& terms = pods.affinity[kind];
  if (!IsObjectOf(terms, {kRequired, kPreferred})) return names->push_back(kNotUnderstood);
  for (const Json& list : terms) {
    if (!list.is_array()) return names->push_back(kNotUnderstood);
  }
  for (const Json& term : terms.value(kRequired, Json::array())) AddNamespacesOfTerm(term, names);
  for (const Json& preferred : terms.value(kPreferred, Json::array())) {
    if (!IsObjectOf(preferred, {"weight", "podAffinityTerm"})) {
      names->push_back(kNotUnderstood);
    } else if (preferred.contains("podAffinityTerm")) {
      AddNamespacesOfTerm(preferred["podAffinityTerm"], names);
    }
  }
}

void AddAffinityNamespaces(const PodTemplate& pods, NameList* names) {
  AddNamespacesOf(pods, "podAffinity", names);
}

void AddAntiAffinityNamespaces(const PodTemplate& pods, NameList* names) {
  AddNamespacesOf(pods, "podAntiAffinity", names);
}

struct Field {
  const char* name;  // in spec.podTemplate
  const List* list;
  void (*add_names)(const PodTemplate& pods, NameList* names);
};

constexpr Field kFields[] = {
    {"spec.containers[].image", &kImages, AddImages},
    {"spec.serviceAccountName", &kServiceAccounts, AddText<&PodTemplate::service_account_name>},
    {"spec.priorityClassName", &kPriorityClasses, AddText<&PodTemplate::priority_class_name>},
    {"spec.tolerations", &kTolerationKeys, AddTolerationKeys},
    {"spec.nodeSelector", &kNodeLabels, AddSelectedLabels},
    {"workers.tolerations", &kTolerationKeys, AddTolerationKeysOfWorkers},
    {"workers.nodeSelector", &kNodeLabels, AddLabelsOfWorkers},
    {"spec.affinity", &kNodeLabels, AddNodeLabels},
    {"spec.affinity.podAffinity", &kAffinityNamespaces, AddAffinityNamespaces},
    {"spec.affinity.podAntiAffinity", &kAffinityNamespaces, AddAntiAffinityNamespaces},
    {"spec.containers[].env", &kSecrets, AddSecretsInEnv},
    {"spec.volumes", &kVolumeTypes, AddVolumeTypes},
    {"spec.volumes", &kSecrets, AddMountedSecrets},
    {"spec.runtimeClassName", &kRuntimeClasses, AddText<&PodTemplate::runtime_class_name>},
    {"spec.schedulerName", &kSchedulers, AddText<&PodTemplate::scheduler_name>},
    {"spec.containers[].resources", &kResources, AddResources},
};

bool Admits(const NameList& allowed, std::string_view name) {
  return std::any_of(allowed.begin(), allowed.end(), [&](std::string_view entry) {
    if (!entry.ends_with('*')) return name == entry;
    return name.starts_with(entry.substr(0, entry.size() - 1));
  });
}

std::string Sentence(const Field& field, const NameList& allowed) {
  std::string text = std::string("spec.podTemplate.") + field.name + ": ";
  if (allowed.empty()) {
    text += std::string("no ") + field.list->what + " are allowed here; leave the field out";
  } else {
    NameList shown(allowed.begin(), allowed.begin() + static_cast<std::ptrdiff_t>(
                                                          std::min(allowed.size(), kShownNames)));
    if (allowed.size() > kShownNames) {
      shown.push_back("and " + std::to_string(allowed.size() - kShownNames) + " more");
    }
    text += std::string("only these ") + field.list->what +
            " are allowed here: " + Join(shown, ", ") + "; leave out others";
  }
  return text + ", or ask the administrator to extend jobs.allowed." + field.list->name +
         " of the chart (--pod-rules of the operator)";
}

bool IsEntry(std::string_view entry) {
  const bool printable = std::all_of(entry.begin(), entry.end(), [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != '\x7f';
  });
  return !entry.empty() && printable &&
         entry.substr(0, entry.size() - 1).find('*') == std::string_view::npos;
}

void CheckEntries(const List& list, const NameList& entries, JsonReader* reader) {
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string& entry = entries[i];
    const std::string field = std::string(list.name) + "[" + std::to_string(i) + "]";
    if (!IsEntry(entry)) {
      reader->Report(field, "'" + entry +
                                "' is no name; write one, with '*' at its end for all "
                                "names that begin so");
    } else if (&list == &kImages && entry.size() > 1 && entry.ends_with('*') &&
               entry.find('/') == std::string::npos) {
      // "registry.example*" would admit registry.example.evil.
      reader->Report(field,
                     "'" + entry + "' does not end its registry; write a '/' before the '*'");
    }
  }
}

}  // namespace

Result<PodRules> PodRulesFromJson(const Json& json) {
  PodRules rules;
  std::vector<FieldError> errors;
  JsonReader reader(json, "", &errors);
  for (const List* list : kLists) {
    PodRules::Names& names = rules.*(list->names);
    if (reader.Optional(list->name, &names)) CheckEntries(*list, *names, &reader);
  }
  reader.Finish();
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return rules;
}

Result<PodRules> ReadPodRules(const std::string& file) {
  return ReadYamlFileAs(file, PodRulesFromJson);
}

Status CheckPods(const PodRules& rules, const PodTemplate& pods, std::string_view job_namespace) {
  for (const Field& field : kFields) {
    const PodRules::Names& allowed = rules.*(field.list->names);
    if (!allowed.has_value()) continue;
    NameList names;
    field.add_names(pods, &names);
    if (field.list == &kAffinityNamespaces) std::erase(names, job_namespace);
    const bool admitted = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return Admits(*allowed, name);
    });
    if (!admitted) return PermissionDeniedError(Sentence(field, *allowed));
  }
  return OkStatus();
}

}  // namespace lambdadnn
