// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/refused_fields.h"

#include <algorithm>
#include <array>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kStatus = "status.";
// Fields from which decisions are made, and for which users wait.
constexpr std::array<std::string_view, 8> kNeeded = {"plan",      "planHistory", "profile",
                                                     "execution", "startTime",   "completionTime",
                                                     "model",     "conditions"};

bool IsPathCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
}

bool CanDoWithout(std::string_view path) {
  const std::string_view root = path.substr(0, path.find('.'));
  return !root.empty() && std::find(kNeeded.begin(), kNeeded.end(), root) == kNeeded.end();
}

std::string TextAt(const Json& patch, const std::string& field) {
  const Json* value = &patch;
  for (const std::string& word : Split("status." + field, '.')) {
    const auto child = value->is_object() ? value->find(word) : value->end();
    if (!value->is_object() || child == value->end()) return {};
    value = &*child;
  }
  return value->is_string() ? value->get<std::string>() : std::string();
}

}  // namespace

bool AddRefused(std::string_view message, const Json& patch, RefusedFields* refused) {
  bool news = false;
  for (const std::string& field : RefusedStatusFields(message)) {
    const std::string text = TextAt(patch, field);
    const auto known = refused->find(field);
    if (known != refused->end() && known->second == text) continue;
    (*refused)[field] = text;
    news = true;
  }
  return news;
}

std::set<std::string> RefusedIn(const Json& patch, const RefusedFields& refused) {
  std::set<std::string> fields;
  for (const auto& [field, text] : refused) {
    if (text.empty() || text == TextAt(patch, field)) fields.insert(field);
  }
  return fields;
}

std::set<std::string> RefusedStatusFields(std::string_view message) {
  std::set<std::string> fields;
  for (size_t at = message.find(kStatus); at != std::string_view::npos;
       at = message.find(kStatus, at + 1)) {
    if (at > 0 && IsPathCharacter(message[at - 1])) continue;
    const std::string_view rest = message.substr(at + kStatus.size());
    const auto end = std::find_if_not(rest.begin(), rest.end(), IsPathCharacter);
    // "status.phase: Unsupported value", "status.list[2].name: Required value".
    if (end == rest.end() || (*end != ':' && *end != '[')) continue;
    const std::string_view path = rest.substr(0, static_cast<size_t>(end - rest.begin()));
    if (CanDoWithout(path)) fields.insert(std::string(path));
  }
  return fields;
}

bool DropStatusFields(const std::set<std::string>& fields, Json* patch) {
  const auto status = patch->find("status");
  if (status == patch->end() || !status->is_object()) return false;
  for (const std::string& field : fields) {
    Json* parent = &*status;
    const std::vector<std::string> words = Split(field, '.');
    for (size_t i = 0; i + 1 < words.size() && parent != nullptr; ++i) {
      const auto child = parent->find(words[i]);
      parent = child != parent->end() && child->is_object() ? &*child : nullptr;
    }
    if (parent == nullptr) continue;
    parent->erase(words.back());
    if (parent->empty() && words.size() == 2) status->erase(words.front());
  }
  return !status->empty();
}

}  // namespace lambdadnn
