// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/pod_rules.h"

#include <algorithm>
#include <initializer_list>
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
constexpr List kSecrets = {"secrets", &PodRules::secrets, "Secrets"};
constexpr const List* kLists[] = {&kImages,         &kServiceAccounts, &kPriorityClasses,
                                  &kTolerationKeys, &kNodeLabels,      &kSecrets};

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

void AddItself(const Json& value, NameList* names) { names->push_back(TextOf(value)); }

void AddKeys(const Json& labels, NameList* names) {
  if (!labels.is_object()) return names->push_back(kNotUnderstood);
  for (const auto& [key, value] : labels.items()) names->push_back(key);
}

void AddTolerationKeys(const Json& tolerations, NameList* names) {
  if (!tolerations.is_array()) return names->push_back(kNotUnderstood);
  // Without a key it tolerates every taint.
  for (const Json& toleration : tolerations) names->push_back(TextAt(toleration, "key"));
}

void AddSecrets(const Json& environment, NameList* names) {
  if (!environment.is_array()) return names->push_back(kNotUnderstood);
  for (const Json& variable : environment) {
    if (!variable.is_object() || !variable.contains("valueFrom")) continue;
    const Json& from = variable["valueFrom"];
    if (!IsObjectOf(from, {"configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"})) {
      names->push_back(kNotUnderstood);
    } else if (from.contains("secretKeyRef")) {
      const Json& secret = from["secretKeyRef"];
      const bool known = IsObjectOf(secret, {"name", "key", "optional"});
      names->push_back(known ? TextAt(secret, "name") : kNotUnderstood);
    }
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

void AddNodeLabels(const Json& affinity, NameList* names) {
  if (!IsObjectOf(affinity, {"nodeAffinity", "podAffinity", "podAntiAffinity"})) {
    return names->push_back(kNotUnderstood);
  }
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

struct Field {
  const char* name;  // in spec.runtime
  const List* list;
  void (*add_names)(const Json& value, NameList* names);
};

constexpr Field kFields[] = {
    {"image", &kImages, AddItself},
    {"serverImage", &kImages, AddItself},
    {"serviceAccountName", &kServiceAccounts, AddItself},
    {"priorityClassName", &kPriorityClasses, AddItself},
    {"tolerations", &kTolerationKeys, AddTolerationKeys},
    {"nodeSelector", &kNodeLabels, AddKeys},
    {"affinity", &kNodeLabels, AddNodeLabels},
    {"env", &kSecrets, AddSecrets},
};

bool Admits(const NameList& allowed, std::string_view name) {
  return std::any_of(allowed.begin(), allowed.end(), [&](std::string_view entry) {
    if (!entry.ends_with('*')) return name == entry;
    return name.starts_with(entry.substr(0, entry.size() - 1));
  });
}

std::string Sentence(const Field& field, const NameList& allowed) {
  std::string text = std::string("spec.runtime.") + field.name + ": ";
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

Status CheckPods(const PodRules& rules, const Json& runtime) {
  if (!runtime.is_object()) return OkStatus();
  for (const Field& field : kFields) {
    const PodRules::Names& allowed = rules.*(field.list->names);
    if (!allowed.has_value() || !runtime.contains(field.name)) continue;
    NameList names;
    field.add_names(runtime[field.name], &names);
    const bool admitted = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return Admits(*allowed, name);
    });
    if (!admitted) return PermissionDeniedError(Sentence(field, *allowed));
  }
  return OkStatus();
}

}  // namespace lambdadnn
