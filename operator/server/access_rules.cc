// SPDX-License-Identifier: Apache-2.0
#include "operator/server/access_rules.h"

#include "common/json/yaml.h"

namespace lambdadnn {
namespace {

void AddRule(const std::string& set, const Json& rule, std::vector<AccessRule>* rules) {
  const std::vector<std::string> names = rule.value("resourceNames", std::vector<std::string>{""});
  for (const std::string& group : rule.at("apiGroups").get<std::vector<std::string>>()) {
    for (const std::string& resource : rule.at("resources").get<std::vector<std::string>>()) {
      const size_t slash = resource.find('/');
      for (const std::string& name : names) {
        for (const std::string& verb : rule.at("verbs").get<std::vector<std::string>>()) {
          rules->push_back({set, group, resource.substr(0, slash),
                            slash == std::string::npos ? "" : resource.substr(slash + 1), name,
                            verb});
        }
      }
    }
  }
}

std::vector<AccessRule> ReadRules() {
  const YamlParseResult parsed = ParseYaml(EmbeddedRbacRules());
  LDNN_CHECK(!parsed.error.has_value() && parsed.documents.size() == 1, "rbac-rules.yaml");
  std::vector<AccessRule> rules;
  for (const auto& [set, entries] : parsed.documents.front().value.at("sets").items()) {
    for (const Json& entry : entries) AddRule(set, entry, &rules);
  }
  return rules;
}

}  // namespace

const std::vector<AccessRule>& AccessRules() {
  static const std::vector<AccessRule> rules = ReadRules();
  return rules;
}

std::string DescribeRule(const AccessRule& rule) {
  std::string text = rule.verb + " " + rule.resource;
  if (!rule.subresource.empty()) text += "/" + rule.subresource;
  if (!rule.name.empty()) text += " \"" + rule.name + "\"";
  return rule.group.empty() ? text : text + " in " + rule.group;
}

}  // namespace lambdadnn
