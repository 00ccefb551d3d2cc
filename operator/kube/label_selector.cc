// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/label_selector.h"

#include <algorithm>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

// Splits at commas outside of parentheses.
std::vector<std::string_view> SplitRequirements(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == ',' && depth == 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

bool IsLabelText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == '/';
  });
}

Status BadRequirement(std::string_view text) {
  return InvalidArgumentError("label selector: cannot read \"" + std::string(text) +
                              "\"; write key=value, key!=value, key in (a, b), key or !key");
}

}  // namespace

Result<LabelSelector::Requirement> LabelSelector::ParseRequirement(std::string_view text) {
  Requirement requirement;
  const std::string_view trimmed = Trim(text);
  std::string_view key = trimmed;
  const auto take_value = [&](size_t at, size_t length, Operator op) {
    key = Trim(trimmed.substr(0, at));
    requirement.op = op;
    requirement.values = {std::string(Trim(trimmed.substr(at + length)))};
  };
  const auto take_set = [&](size_t at, size_t length, Operator op) {
    const std::string_view rest = Trim(trimmed.substr(at + length));
    if (rest.size() < 2 || rest.front() != '(' || rest.back() != ')') return false;
    key = Trim(trimmed.substr(0, at));
    requirement.op = op;
    for (const std::string& value : Split(rest.substr(1, rest.size() - 2), ',')) {
      requirement.values.emplace_back(Trim(value));
    }
    return true;
  };
  if (const size_t not_in = trimmed.find(" notin"); not_in != std::string_view::npos) {
    if (!take_set(not_in, 6, Operator::kNotIn)) return BadRequirement(text);
  } else if (const size_t in = trimmed.find(" in"); in != std::string_view::npos) {
    if (!take_set(in, 3, Operator::kIn)) return BadRequirement(text);
  } else if (const size_t differs = trimmed.find("!="); differs != std::string_view::npos) {
    take_value(differs, 2, Operator::kNotIn);
  } else if (const size_t twice = trimmed.find("=="); twice != std::string_view::npos) {
    take_value(twice, 2, Operator::kIn);
  } else if (const size_t equals = trimmed.find('='); equals != std::string_view::npos) {
    take_value(equals, 1, Operator::kIn);
  } else if (trimmed.starts_with('!')) {
    key = Trim(trimmed.substr(1));
    requirement.op = Operator::kDoesNotExist;
  }
  const bool readable =
      !key.empty() && IsLabelText(key) &&
      std::all_of(requirement.values.begin(), requirement.values.end(), IsLabelText);
  if (!readable) return BadRequirement(text);
  requirement.key = key;
  return requirement;
}

Result<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  if (Trim(text).empty()) return selector;
  for (const std::string_view part : SplitRequirements(text)) {
    LDNN_ASSIGN_OR_RETURN(auto requirement, ParseRequirement(part));
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

bool LabelSelector::Matches(const Json& object) const {
  if (requirements_.empty()) return true;
  static const Json kNoLabels = Json::object();
  const auto metadata = object.find("metadata");
  const Json* labels = &kNoLabels;
  if (metadata != object.end() && metadata->is_object()) {
    const auto found = metadata->find("labels");
    if (found != metadata->end() && found->is_object()) labels = &*found;
  }
  return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& each) {
    const auto found = labels->find(each.key);
    const bool exists = found != labels->end() && found->is_string();
    const auto listed = [&] {
      return std::find(each.values.begin(), each.values.end(),
                       found->get_ref<const std::string&>()) != each.values.end();
    };
    switch (each.op) {
      case Operator::kIn:
        return exists && listed();
      case Operator::kNotIn:
        return !exists || !listed();
      case Operator::kExists:
        return exists;
      case Operator::kDoesNotExist:
        return !exists;
    }
    return false;
  });
}

}  // namespace lambdadnn
