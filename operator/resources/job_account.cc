// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/job_account.h"

#include <algorithm>

#include "common/json/json_path.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {

std::string JobChildName(const std::string& job_name) { return job_name + "-lambdadnn"; }

std::vector<std::string> PullSecretsIn(const Json& object) {
  std::vector<std::string> names;
  const Json* list = FindPath(object, {"imagePullSecrets"});
  if (list == nullptr || !list->is_array()) return names;
  for (const Json& secret : *list) {
    const Json* name = FindPath(secret, {"name"});
    if (name != nullptr && name->is_string()) names.push_back(name->get<std::string>());
  }
  return names;
}

Json PullSecretList(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) {
    Json secret = {{"name", name}};
    if (std::find(list.begin(), list.end(), secret) == list.end()) {
      list.push_back(std::move(secret));
    }
  }
  return list;
}

std::vector<std::string> PullSecretsBeside(const Json& account,
                                           const std::vector<std::string>& wanted) {
  std::vector<std::string> names = PullSecretsIn(account);
  const bool has_all = std::all_of(wanted.begin(), wanted.end(), [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
  if (has_all) return {};
  names.insert(names.end(), wanted.begin(), wanted.end());
  return names;
}

Json JobAccount(const FunctionGroup& group, const std::vector<std::string>& pull_secrets) {
  Json account = {{"apiVersion", "v1"},
                  {"kind", "ServiceAccount"},
                  {"metadata",
                   {{"name", JobChildName(group.job_name)},
                    {"namespace", group.namespace_name},
                    {"labels", ChildLabels(group.job_name, group.job_uid)},
                    {"ownerReferences", OwnerReferences(group.job_name, group.job_uid)}}},
                  {"automountServiceAccountToken", false}};
  if (!pull_secrets.empty()) account["imagePullSecrets"] = PullSecretList(pull_secrets);
  return account;
}

bool IsOfJob(const Json& object, const std::string& job_uid) {
  const Json* label = FindPath(object, {"metadata", "labels", kJobUidLabel});
  return label != nullptr && *label == job_uid;
}

}  // namespace lambdadnn
