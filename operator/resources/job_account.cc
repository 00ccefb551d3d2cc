// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/job_account.h"

#include "common/json/json_path.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {

std::string JobChildName(const std::string& job_name) { return job_name + "-lambdadnn"; }

Json JobAccount(const FunctionGroup& group, const Json& image_pull_secrets) {
  Json account = {{"apiVersion", "v1"},
                  {"kind", "ServiceAccount"},
                  {"metadata",
                   {{"name", JobChildName(group.job_name)},
                    {"namespace", group.namespace_name},
                    {"labels", ChildLabels(group.job_name, group.job_uid)},
                    {"ownerReferences", OwnerReferences(group.job_name, group.job_uid)}}},
                  {"automountServiceAccountToken", false}};
  if (image_pull_secrets.is_array() && !image_pull_secrets.empty()) {
    account["imagePullSecrets"] = image_pull_secrets;
  }
  return account;
}

bool IsOfJob(const Json& object, const std::string& job_uid) {
  const Json* label = FindPath(object, {"metadata", "labels", kJobUidLabel});
  return label != nullptr && *label == job_uid;
}

}  // namespace lambdadnn
