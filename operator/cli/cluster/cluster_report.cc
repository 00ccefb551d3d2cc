// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/cluster_report.h"

#include <filesystem>

#include "operator/api/job_codec.h"
#include "operator/cli/cluster/job_store.h"
#include "operator/controller/observe/snapshot.h"
#include "operator/kinds/serverless_training_job.h"

namespace lambdadnn {

Result<RunResults> FetchResults(Cluster& cluster, Runtime& runtime, const std::string& name,
                                const std::string& directory) {
  const ObjectName job_name = {cluster.namespace_name, name};
  const auto object = cluster.kube->Get(ServerlessTrainingJobType(), job_name);
  if (!object.ok()) return ExplainJobError(object.status(), job_name, cluster.server);
  std::vector<FieldError> ignored;  // of a newer operator
  const Job job = DecodeJob(*object, &ignored);
  if (!IsFinished(job)) {
    return FailedPreconditionError("job " + name + " has no report before its end; it is " +
                                   (job.status.phase.empty() ? "Pending" : job.status.phase) +
                                   ": lambdadnn status " + name + " -w waits for it");
  }
  LDNN_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> store,
                        OpenStoreOfJob(*cluster.kube, runtime, job));
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return PermissionDeniedError("cannot make the folder " + directory + ": " + error.message() +
                                 "; name another with --out");
  }
  RunResults results = CollectResults(*store, job, directory);
  if (!results.files.empty()) return results;
  const std::string why = results.problems.empty() ? "it holds nothing of this job's results"
                                                   : results.problems.front();
  return UnavailableError("no results could be read from " + store->Describe() + ": " + why);
}

}  // namespace lambdadnn
