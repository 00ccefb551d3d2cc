// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/owned_object.h"

#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {

Status DeleteOwned(KubeClient& kube, const ResourceType& type, const ObjectName& name,
                   const std::string& job_uid) {
  const Result<Json> object = kube.Get(type, name);
  if (object.status().code() == StatusCode::kNotFound) return OkStatus();
  LDNN_RETURN_IF_ERROR(object.status());
  if (!IsOwnedByJob(*object, job_uid)) return OkStatus();
  const Status deleted = kube.Delete(type, name, UidOf(*object));
  return deleted.code() == StatusCode::kNotFound ? OkStatus() : deleted;
}

Result<bool> DeleteOfEarlierJob(KubeClient& kube, const ResourceType& type, const Json& object,
                                const std::string& job_name, const std::string& job_uid) {
  if (!IsOfEarlierJob(object, job_name, job_uid)) return false;
  const Status deleted = kube.Delete(type, NameOf(object), UidOf(object));
  if (!deleted.ok() && deleted.code() != StatusCode::kNotFound) return deleted;
  return true;
}

}  // namespace lambdadnn
