// SPDX-License-Identifier: Apache-2.0
// What a job may reach with the operator's own credentials: its place in the operator's store and
// the folders that an administrator lists. Everything else that a spec names needs a Secret of its
// user, and a file needs to be listed: functions read files with the rights of the function host,
// whatever Secret the job has.
//
// Places compare by whole parts of their paths ("s3://b/data" holds "s3://b/data/x", not
// "s3://b/data2"). A path with '..', an empty part, a backslash or an encoded '.', '/' or '\' is
// refused instead of being made sense of. Files are also compared with every symbolic link
// resolved.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "operator/api/job.h"
#include "operator/controller/admission/store_endpoint.h"

namespace lambdadnn {

struct TenantRules {
  // The operator's own store: "s3://bucket/prefix" or "file:///folder"; empty = it has none. A job
  // keeps its objects below <uri>/lambdadnn/<namespace>/<job id>.
  std::string uri;
  // Of that store; an empty endpoint = AWS's.
  std::string endpoint;
  std::string region = "us-east-1";
  bool path_style = true;
  bool sign_payload = true;
  // Folders that jobs may read, in the operator's store or elsewhere at its endpoint. "{namespace}"
  // in one stands for the job's namespace.
  std::vector<std::string> readable;
  // Functions get the operator's own credentials where the store gives none of one job and the job
  // names no Secret: whoever may read pods or Secrets in its namespace has them then.
  bool expose_operator_credentials = false;
  // Of the endpoints that jobs name.
  EndpointRules endpoints = {};
};

// kInvalidArgument says what is wrong with a place as an administrator writes it.
Status CheckPlace(const std::string& uri);

// A job that names no store keeps its objects in the operator's.
void UseOperatorStore(const TenantRules& rules, Job* job);

// kPermissionDenied names the field, what is wrong with it and what to do. `job` is as
// UseOperatorStore leaves it. Looks at symbolic links, so may wait for the file system.
Status CheckReach(const TenantRules& rules, const Job& job);

// The same of the checkpoint that status says the job goes on from: it lies in the job's own place,
// whoever wrote the status.
Status CheckStartCheckpoint(const Job& job);

}  // namespace lambdadnn
