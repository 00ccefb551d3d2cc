// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/job_key.h"

#include "common/base/base64.h"
#include "common/base/bytes.h"
#include "common/json/json_path.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
std::string JobKeySecretName(const Job& job) { return job.metadata.name + "-lambdadnn-key"; }

std::string MakeJobKey(Random& random) {
  std::string key;
  for (int i = 0; i < 4; ++i) key += Hex64(random.Next());
  return key;
}

Json JobKeySecret(const Job& job, const std::string& key) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"name", JobKeySecretName(job)},
            {"namespace", job.metadata.namespace_name},
            {"labels", ChildLabels(job.metadata.name, job.metadata.uid)},
            {"ownerReferences", OwnerReferences(job.metadata.name, job.metadata.uid)}}},
          {"type", "Opaque"},
          {"data", {{"key", EncodeBase64(key)}}}};
}

std::optional<std::string> KeyOfSecret(const Job& job, const Json& secret) {
  const Json* key = FindPath(secret, {"data", "key"});
  if (!IsOwnedByJob(secret, job.metadata.uid) || key == nullptr || !key->is_string())
    return std::nullopt;
  std::optional<std::string> decoded = DecodeBase64(key->get<std::string>());
  if (!decoded.has_value() || decoded->empty()) return std::nullopt;
  return decoded;
}

}  // namespace lambdadnn
