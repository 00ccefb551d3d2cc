// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/plan/yaml_text.h"

#include <algorithm>
#include <cctype>

#include "common/json/dump_json.h"

namespace lambdadnn {
namespace {

bool Inline(const Json& value) {
  if (value.empty() || !value.is_structured()) return true;
  return value.is_array() && std::none_of(value.begin(), value.end(),
                                          [](const Json& item) { return item.is_structured(); });
}

// A scalar, an empty collection or a list of scalars: JSON is YAML.
std::string InlineText(const Json& value) {
  if (!value.is_array()) return DumpJson(value);
  std::string text = "[";
  for (const Json& item : value) text += (text.size() > 1 ? ", " : "") + DumpJson(item);
  return text + "]";
}

std::string Key(const std::string& name) {
  const bool plain = !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) &&
                     std::all_of(name.begin(), name.end(), [](unsigned char letter) {
                       return std::isalnum(letter) || letter == '_';
                     });
  return plain ? name : DumpJson(Json(name));
}

// `first`: the indentation of the first line stands already (after "- ").
void Append(const Json& value, size_t indent, bool first, std::string* out) {
  const auto start_line = [&] {
    if (!first) out->append(indent, ' ');
    first = false;
  };
  if (value.is_object()) {
    for (const auto& [name, item] : value.items()) {
      start_line();
      *out += Key(name) + ":";
      if (Inline(item)) {
        *out += " " + InlineText(item) + "\n";
      } else {
        *out += "\n";
        Append(item, indent + 2, false, out);
      }
    }
    return;
  }
  for (const Json& item : value) {
    start_line();
    *out += "- ";
    if (Inline(item)) {
      *out += InlineText(item) + "\n";
    } else {
      Append(item, indent + 2, true, out);
    }
  }
}

}  // namespace

std::string FormatYaml(const Json& value) {
  if (Inline(value)) return InlineText(value) + "\n";
  std::string text;
  Append(value, 0, false, &text);
  return text;
}

}  // namespace lambdadnn
