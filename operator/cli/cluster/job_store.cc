// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/job_store.h"

#include "operator/controller/store_access.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// The user waits.
constexpr double kRetryBudgetSeconds = 10;

}  // namespace

Result<std::unique_ptr<ObjectStore>> OpenStoreOfJob(KubeClient& kube, Runtime& runtime,
                                                    const Job& job) {
  const ObjectStoreSpec& spec = job.spec.object_store;
  if (spec.uri.empty() && spec.bucket.empty()) {
    return InvalidArgumentError("job " + job.metadata.name +
                                " names no object store (spec.objectStore): its results are in "
                                "the operator's own" +
                                (job.status.model_uri.empty() ? "" : ": " + job.status.model_uri));
  }
  const StoreReference reference = MakeStoreReference(job);
  StoreSecrets secrets;
  // A user's own credentials go before those that the job's functions have.
  if (CredentialsFromEnvironment().access_key.empty()) {
    LDNN_ASSIGN_OR_RETURN(secrets, ReadStoreSecrets(kube, job));
  }
  return OpenJobStore(reference, secrets, "", runtime, kRetryBudgetSeconds);
}

}  // namespace lambdadnn
