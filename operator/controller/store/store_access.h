// SPDX-License-Identifier: Apache-2.0
// How a controller's process and its functions reach the object stores of jobs: with what the
// Secrets say that the job names, else with the credentials of this process's environment.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "common/objectstore/open_store.h"
#include "common/protocol/slice.h"
#include "operator/api/job.h"
#include "operator/controller/store/store_bulkheads.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// What spec.objectStore.credentialsSecretRef and caSecretRef hold; empty = the job names none.
struct StoreSecrets {
  StoreCredentials credentials = {};
  std::string ca_pem = "";
  // Changes whenever one of them does.
  std::string version = "";
};
// kFailedPrecondition with a sentence that says which Secret or key is missing.
Result<StoreSecrets> ReadStoreSecrets(KubeClient& kube, const Job& job);

// Whether a store refused because of who asks: what a changed Secret may mend.
bool IsAccessFailure(const Status& status);

// The store of a job. A retry budget of 0 is the store's own; `cancellation` ends its requests
// (StoreConfig).
Result<std::unique_ptr<ObjectStore>> OpenJobStore(
    const StoreReference& reference, const StoreSecrets& secrets, const std::string& ca_file,
    Runtime& runtime, double retry_budget_seconds = 0,
    std::shared_ptr<HttpCancellation> cancellation = nullptr);

// Credentials for less than what `secrets` allow, or else this process's (sts.h).
Result<TemporaryCredentials> AssumeJobRole(
    const StoreReference& reference, const StoreSecrets& secrets, const std::string& ca_file,
    Runtime& runtime, const AssumedRole& role,
    std::shared_ptr<HttpCancellation> cancellation = nullptr);

// A store that no job describes, as the environment of this process does: the region and how
// buckets are named (LAMBDADNN_S3_REGION, LAMBDADNN_S3_PATH_STYLE). Its endpoint is OpenJobStore's
// to know.
StoreReference OwnStoreReference(const std::string& uri);

// Jobs for which the same store hangs: as its jobs see it (namespace, endpoint, Secret).
StoreBulkhead StoreBulkheadOf(const Job& job);

// What functions need in their environment to reach the store as this process does; and as a job's
// own Secrets say.
std::map<std::string, std::string> StoreEnvironment(const std::string& ca_file);
// The same for functions on other machines: what a file of this one says stands in the environment.
// An error names a file that cannot be read.
Result<std::map<std::string, std::string>> PortableStoreEnvironment(const std::string& ca_file);
std::map<std::string, std::string> StoreEnvironment(
    const std::map<std::string, std::string>& of_process, const StoreSecrets& secrets);
// The same without access key, secret key and session token.
std::map<std::string, std::string> WithoutCredentials(
    std::map<std::string, std::string> environment);

}  // namespace lambdadnn
