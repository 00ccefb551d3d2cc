// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/job_children.h"

#include <algorithm>

#include "common/json/json_path.h"
#include "operator/api/job.h"

namespace lambdadnn {

Json ChildLabels(const std::string& job_name, const std::string& job_uid) {
  return {{kManagedByLabel, kManagedBy},
          {kJobUidLabel, job_uid},
          {kJobNameLabel, job_name},
          {kNoBackupLabel, "true"}};
}

std::string GroupSelector(const std::string& job_uid, const std::string& group) {
  std::string selector = std::string(kJobUidLabel) + "=" + job_uid;
  if (!group.empty()) selector += std::string(",") + kGroupLabel + "=" + group;
  return selector;
}

Json OwnerReferences(const std::string& job_name, const std::string& job_uid) {
  return Json::array({{{"apiVersion", kApiVersion},
                       {"kind", kJobKind},
                       {"name", job_name},
                       {"uid", job_uid},
                       {"controller", true},
                       {"blockOwnerDeletion", true}}});
}

namespace {

template <typename Selected>
bool AnyOwner(const Json& object, const Selected& selected) {
  const Json* owners = FindPath(object, {"metadata", "ownerReferences"});
  return owners != nullptr && owners->is_array() &&
         std::any_of(owners->begin(), owners->end(), selected);
}

bool Is(const Json& owner, const char* field, const std::string& value) {
  const Json* found = FindPath(owner, {field});
  return found != nullptr && *found == value;
}

}  // namespace

bool IsOwnedByJob(const Json& object, const std::string& job_uid) {
  return AnyOwner(object, [&](const Json& owner) { return Is(owner, "uid", job_uid); });
}

bool IsOwnedByJobNamed(const Json& object, const std::string& job_name) {
  return AnyOwner(object, [&](const Json& owner) {
    return Is(owner, "kind", kJobKind) && Is(owner, "name", job_name);
  });
}

bool IsOfEarlierJob(const Json& object, const std::string& job_name, const std::string& job_uid) {
  const Json* labels = FindPath(object, {"metadata", "labels"});
  if (labels == nullptr || !Is(*labels, kManagedByLabel, kManagedBy)) return false;
  const Json* uid = FindPath(*labels, {kJobUidLabel});
  return Is(*labels, kJobNameLabel, job_name) && uid != nullptr && uid->is_string() &&
         !uid->get_ref<const std::string&>().empty() && *uid != job_uid &&
         !IsOwnedByJob(object, job_uid);
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
