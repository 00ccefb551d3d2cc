// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/object_metadata.h"

#include <algorithm>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr size_t kMaxNameLength = 253;  // of a DNS name
constexpr size_t kMaxLabelLength = 63;

const Json* MetadataField(const Json& object, const char* field) {
  if (!object.is_object()) return nullptr;
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return nullptr;
  const auto found = metadata->find(field);
  return found == metadata->end() ? nullptr : &*found;
}

bool IsLowerAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlphanumeric(char c) { return IsLowerAlphanumeric(c) || (c >= 'A' && c <= 'Z'); }

bool IsDnsName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength) return false;
  for (const std::string& label : Split(name, '.')) {
    if (label.empty() || !IsLowerAlphanumeric(label.front()) ||
        !IsLowerAlphanumeric(label.back()) || !std::all_of(label.begin(), label.end(), [](char c) {
          return IsLowerAlphanumeric(c) || c == '-';
        })) {
      return false;
    }
  }
  return true;
}

// "name" or a label's value: letters, digits, '-', '_', '.', bounded by letters or digits.
bool IsLabelPart(std::string_view text) {
  return text.size() <= kMaxLabelLength && !text.empty() && IsAlphanumeric(text.front()) &&
         IsAlphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

bool IsQualifiedName(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return IsLabelPart(key);
  return IsDnsName(key.substr(0, slash)) && IsLabelPart(key.substr(slash + 1));
}

void CheckTextMap(JsonReader& metadata, const char* name, bool labels) {
  const Json* map = metadata.Child(name);
  if (map == nullptr) return;
  if (!map->is_object()) return metadata.Report(name, "must be a map of text to text");
  for (const auto& [key, value] : map->items()) {
    const std::string path = std::string(name) + "." + key;
    if (!IsQualifiedName(key)) {
      metadata.Report(path, "is not a valid key; use letters, digits, '-', '_' and '.'");
    } else if (!value.is_string()) {
      metadata.Report(path, "must be text; put it in quotes");
    } else if (const auto& text = value.get_ref<const std::string&>();
               labels && !text.empty() && !IsLabelPart(text)) {
      metadata.Report(path,
                      "is not a valid label; use at most 63 letters, digits, '-', '_' and '.'");
    }
  }
}

void CheckOwners(JsonReader& metadata, std::vector<FieldError>* errors) {
  const Json* owners = metadata.Child("ownerReferences");
  if (owners == nullptr) return;
  if (!owners->is_array()) return metadata.Report("ownerReferences", "must be a list");
  for (size_t i = 0; i < owners->size(); ++i) {
    JsonReader owner((*owners)[i], "metadata.ownerReferences[" + std::to_string(i) + "]", errors);
    std::string text;
    bool flag = false;
    for (const char* field : {"apiVersion", "kind", "name", "uid"}) owner.Required(field, &text);
    owner.Optional("controller", &flag);
    owner.Optional("blockOwnerDeletion", &flag);
    owner.Finish();
  }
}

}  // namespace

std::string TextField(const Json& value, std::string_view field) {
  if (!value.is_object()) return "";
  const auto found = value.find(field);
  return found != value.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string MetadataText(const Json& object, const char* field) {
  const Json* value = MetadataField(object, field);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::string LabelText(const Json& object, std::string_view label) {
  const Json* labels = MetadataField(object, "labels");
  return labels == nullptr ? std::string() : TextField(*labels, label);
}

ObjectName NameOf(const Json& object) {
  return {MetadataText(object, "namespace"), MetadataText(object, "name")};
}

std::string UidOf(const Json& object) { return MetadataText(object, "uid"); }
std::string ResourceVersionOf(const Json& object) {
  return MetadataText(object, "resourceVersion");
}

bool HasFinalizers(const Json& object) {
  const Json* finalizers = MetadataField(object, "finalizers");
  return finalizers != nullptr && finalizers->is_array() && !finalizers->empty();
}

bool IsBeingDeleted(const Json& object) {
  return !MetadataText(object, "deletionTimestamp").empty();
}

std::vector<std::string> OwnerUids(const Json& object) {
  std::vector<std::string> uids;
  const Json* owners = MetadataField(object, "ownerReferences");
  if (owners == nullptr || !owners->is_array()) return uids;
  for (const Json& owner : *owners) {
    const auto uid = owner.find("uid");
    if (uid != owner.end() && uid->is_string()) uids.push_back(uid->get<std::string>());
  }
  return uids;
}

void CheckMetadata(const ResourceType& type, const Json& object, std::vector<FieldError>* errors) {
  const std::string api_version =
      type.group.empty() ? type.version : type.group + "/" + type.version;
  std::string text;
  JsonReader reader(object, "", errors);
  if (reader.Required("apiVersion", &text) && text != api_version) {
    reader.Report("apiVersion", "must be " + api_version);
  }
  if (reader.Required("kind", &text) && text != type.kind) {
    reader.Report("kind", "must be " + type.kind);
  }
  const Json* json = reader.Child("metadata");
  if (json == nullptr) return reader.Report("metadata", "is required; add it with a name");
  JsonReader metadata(*json, "metadata", errors);
  if (!json->is_object()) return;
  if (metadata.Required("name", &text) && !IsDnsName(text)) {
    metadata.Report("name",
                    "must consist of lower-case letters, digits, '-' and '.', and begin and end "
                    "with a letter or digit");
  }
  for (const char* field : {"namespace", "generateName", "uid", "resourceVersion", "selfLink",
                            "creationTimestamp", "deletionTimestamp"}) {
    metadata.Optional(field, &text);
  }
  int64_t number = 0;
  metadata.Optional("generation", &number);
  metadata.Optional("deletionGracePeriodSeconds", &number);
  std::vector<std::string> finalizers;
  metadata.Optional("finalizers", &finalizers);
  for (const std::string& finalizer : finalizers) {
    if (!IsQualifiedName(finalizer)) {
      metadata.Report("finalizers", "\"" + finalizer + "\" is not a name like domain/name");
    }
  }
  CheckTextMap(metadata, "labels", true);
  CheckTextMap(metadata, "annotations", false);
  CheckOwners(metadata, errors);
  metadata.Child("managedFields");
  metadata.Finish();
}

}  // namespace lambdadnn
