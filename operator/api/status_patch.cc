// SPDX-License-Identifier: Apache-2.0
// The merge patch that turns a stored status into another one and keeps fields that this version
// does not know.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "common/json/json_path.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_summary.h"
#include "operator/api/status_codec.h"

namespace lambdadnn {
namespace {

Json FieldOf(const Json& json, std::string_view name) {
  const Json* field = FindPath(json, {name});
  return field == nullptr ? Json() : *field;
}

// Its items may hold fields that this version does not know.
bool IsListOfObjects(const Json& list) {
  return list.is_array() &&
         std::all_of(list.begin(), list.end(), [](const Json& item) { return item.is_object(); });
}

// Restores the written value of fields that were written in another form, or were not accepted as
// they are: so they differ from this version's, and are written again.
void KeepOtherForms(const Json& written, Json* encoded) {
  for (auto& [key, value] : encoded->items()) {
    const auto old = written.find(key);
    if (old == written.end()) continue;
    if (value.is_object() && old->is_object()) {
      KeepOtherForms(*old, &value);
    } else if (!(value.is_array() && IsListOfObjects(*old)) && value != *old) {
      value = *old;
    }
  }
}

// A status, or some of its fields, as this version would have written it. Unreadable fields keep
// their original form, and are therefore written again.
Json EncodedAsRead(const Json& written) {
  std::vector<FieldError> unreadable;
  const JobStatus read = DecodeStatus(written, &unreadable);
  Json encoded = EncodeStatus(read);
  encoded["summary"] = EncodeSummary(DecodeSummary(FieldOf(written, "summary")));
  // Fields that decode to their defaults but are not there must be written once.
  for (auto field = encoded.begin(); field != encoded.end();) {
    field = written.contains(field.key()) ? std::next(field) : encoded.erase(field);
  }
  KeepOtherForms(written, &encoded);
  // A form that cannot be decoded is removed: the schema may refuse the whole object because of it.
  const Json* planned_for = FindPath(written, {"execution", "plannedFor"});
  if (planned_for != nullptr && !read.execution.planned_for) {
    encoded["execution"]["plannedFor"] = *planned_for;
  }
  return encoded;
}

// The field that tells the items of a list of maps apart; "" = there is no such list.
std::string_view KeyOfItems(std::string_view list) {
  if (list == "conditions") return "type";
  if (list == "planHistory") return "revision";
  if (list == "metrics") return "name";
  return list == "table" ? "memory" : "";
}

const Json* FindItem(const Json& list, std::string_view key, const Json& like) {
  const Json* wanted = FindPath(like, {key});
  if (wanted == nullptr) return nullptr;
  for (const Json& item : list) {
    const Json* found = FindPath(item, {key});
    if (found != nullptr && *found == *wanted) return &item;
  }
  return nullptr;
}

// A merge patch replaces lists as a whole. So unknown fields of their items are copied into the
// patch; known fields are in each item that it writes.
void KeepUnknownOfItems(const Json& written, Json* patch) {
  for (auto& [name, value] : patch->items()) {
    const Json* old = FindPath(written, {name});
    if (old == nullptr) continue;
    if (value.is_object()) KeepUnknownOfItems(*old, &value);
    const std::string_view key = KeyOfItems(name);
    if (!value.is_array() || !old->is_array() || key.empty()) continue;
    for (Json& item : value) {
      const Json* before = FindItem(*old, key, item);
      if (before == nullptr) continue;
      for (const auto& [field, content] : before->items()) {
        if (!item.contains(field)) item[field] = content;
      }
    }
  }
}

// Both are maps, and `after` has every field that `before` has; or lists of such maps, or neither.
bool HasFieldsOf(const Json& after, const Json& before) {
  if (!after.is_structured() && !before.is_structured()) return true;
  if (after.is_array() && before.is_array()) {
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      if (!HasFieldsOf(after[i], before[i])) return false;
    }
    return true;
  }
  if (!after.is_object() || !before.is_object()) return false;
  return std::all_of(before.items().begin(), before.items().end(), [&](const auto& item) {
    const auto found = after.find(item.key());
    return found != after.end() && HasFieldsOf(*found, item.value());
  });
}

// The merge patch from `before` to `after`, two encodings of ours.
Json Difference(const Json& before, Json after) {
  Json patch = Json::object();
  for (const auto& [key, value] : before.items()) {
    if (!after.contains(key)) patch[key] = nullptr;
  }
  for (auto& [key, value] : after.items()) {
    const auto old = before.find(key);
    if (old != before.end() && value.is_object() && old->is_object()) {
      Json nested = Difference(*old, std::move(value));
      if (!nested.empty()) patch[key] = std::move(nested);
    } else if (old == before.end() || *old != value) {
      patch[key] = std::move(value);
    }
  }
  return patch;
}

}  // namespace

Json MakeStatusPatch(const Json& object, const JobStatus& status) {
  Json after = EncodeStatus(status);
  Json patch = Json::object();
  Json other = Json::object();
  const auto found = object.find("status");
  if (found != object.end() && found->is_object()) {
    // Fields that are equal, usually most of them, or only change their value, need not be decoded.
    for (const auto& [key, value] : found->items()) {
      const auto next = after.find(key);
      const bool same = next != after.end() && *next == value;
      if (!same && (next == after.end() || !HasFieldsOf(*next, value))) {
        other[key] = value;
        continue;
      }
      if (!same && value.is_object()) {
        patch[key] = Difference(value, std::move(*next));
      } else if (!same) {
        patch[key] = std::move(*next);
      }
      after.erase(next);
    }
  }
  patch.update(Difference(other.empty() ? other : EncodedAsRead(other), std::move(after)));
  if (found != object.end()) KeepUnknownOfItems(*found, &patch);
  if (patch.empty()) return Json::object();
  return {{"status", std::move(patch)}};
}

}  // namespace lambdadnn
