// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/job_children.h"

#include "operator/api/job.h"

namespace lambdadnn {

Json ChildLabels(const std::string& job_name, const std::string& job_uid) {
  return {{kManagedByLabel, kManagedBy}, {kJobUidLabel, job_uid}, {kJobNameLabel, job_name}};
}

Json OwnerReferences(const std::string& job_name, const std::string& job_uid) {
  return Json::array({{{"apiVersion", kApiVersion},
                       {"kind", kJobKind},
                       {"name", job_name},
                       {"uid", job_uid},
                       {"controller", true},
                       {"blockOwnerDeletion", true}}});
}

Json JobReference(const std::string& namespace_name, const std::string& job_name,
                  const std::string& job_uid) {
  return {{"apiVersion", kApiVersion},
          {"kind", kJobKind},
          {"name", job_name},
          {"namespace", namespace_name},
          {"uid", job_uid}};
}

}  // namespace lambdadnn
