// SPDX-License-Identifier: Apache-2.0
// Labels, annotations and owner reference of a job's Kubernetes objects.
#pragma once

#include <string>

#include "common/json/json_reader.h"

namespace lambdadnn {

inline constexpr const char* kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr const char* kManagedBy = "lambdadnn-operator";
inline constexpr const char* kJobUidLabel = "lambdadnn.io/job-uid";
inline constexpr const char* kJobNameLabel = "lambdadnn.io/job-name";

// Velero leaves out what has it: the operator makes a job's objects anew.
inline constexpr const char* kNoBackupLabel = "velero.io/exclude-from-backup";

// Of what lies in another namespace than its job: that of the job.
inline constexpr const char* kJobNamespaceLabel = "lambdadnn.io/job-namespace";
// Of everything that belongs to a group of functions.
inline constexpr const char* kGroupLabel = "lambdadnn.io/group";
// Of a function with a Service of its own, beside the label of its group: which of the group it is.
inline constexpr const char* kMemberLabel = "lambdadnn.io/member";
// Of a pod whose function serves TLS: at which port. A pod keeps it whatever later operators do.
inline constexpr const char* kTlsPortLabel = "lambdadnn.io/tls-port";
// The port at which other functions of its job connect to a pod.
inline constexpr const char* kPeerPortLabel = "lambdadnn.io/peer-port";
// The container of the function in its pod, beside what a platform adds.
inline constexpr const char* kFunctionContainer = "function";

// metadata.labels of a child.
Json ChildLabels(const std::string& job_name, const std::string& job_uid);

// "lambdadnn.io/job-uid=UID,lambdadnn.io/group=NAME"; all groups of the job without a name.
std::string GroupSelector(const std::string& job_uid, const std::string& group);

// metadata.ownerReferences of a child, which goes with its job.
Json OwnerReferences(const std::string& job_name, const std::string& job_uid);
// Whether one of the object's owners is this job; otherwise an object of this name belongs to a
// user.
bool IsOwnedByJob(const Json& object, const std::string& job_uid);
// Whether one of its owners is a job of this name, now or earlier.
bool IsOwnedByJobNamed(const Json& object, const std::string& job_name);
// Whether it was made for an object of the job's name before this one, by its labels: it is about
// to be collected as garbage, or was restored from a backup, perhaps without its owner.
bool IsOfEarlierJob(const Json& object, const std::string& job_name, const std::string& job_uid);

// The job as events name what they are about.
Json JobReference(const std::string& namespace_name, const std::string& job_name,
                  const std::string& job_uid);

}  // namespace lambdadnn
