// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/job_store.h"

#include "operator/controller/store/store_access.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// The user waits.
constexpr double kRetryBudgetSeconds = 10;

// The operator's own store, which has the objects of a job that names none, from the job's
// status.model.
std::string OperatorStoreOf(const Job& job) {
  const std::string below = "/" + JobPrefix(job) + "/results/model.safetensors";
  const std::string& model = job.status.model_uri;
  return model.ends_with(below) ? model.substr(0, model.size() - below.size()) : "";
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> OpenStoreOfJob(KubeClient& kube, Runtime& runtime,
                                                    const Job& job) {
  const ObjectStoreSpec& spec = job.spec.object_store;
  StoreReference reference = MakeStoreReference(job);
  if (spec.uri.empty() && spec.bucket.empty()) {
    // As the operator reaches it, in an environment like the operator's.
    const StoreReference own = OwnStoreReference(OperatorStoreOf(job));
    reference.uri = own.uri;
    reference.region = own.region;
    reference.path_style = own.path_style;
    reference.sign_payload = own.sign_payload;
    if (reference.uri.empty()) {
      return InvalidArgumentError("job " + job.metadata.name +
                                  " names no object store (spec.objectStore) and has no model: "
                                  "what it left is in the operator's own store");
    }
  }
  StoreSecrets secrets;
  // A user's own credentials go before those that the job's functions have.
  if (CredentialsFromEnvironment().access_key.empty()) {
    LDNN_ASSIGN_OR_RETURN(secrets, ReadStoreSecrets(kube, job));
  }
  return OpenJobStore(reference, secrets, "", runtime, kRetryBudgetSeconds);
}

}  // namespace lambdadnn
