// SPDX-License-Identifier: Apache-2.0
// The object store of a job in a cluster, opened as its user.
#pragma once

#include <memory>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "operator/api/job.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// With the credentials of this environment (LAMBDADNN_S3_*, AWS_*), else those of the Secret that
// the job names, if the user may read it. A job that names no store has its results in the
// operator's, as status.model says (an S3 store at LAMBDADNN_S3_ENDPOINT). kInvalidArgument:
// neither says where.
Result<std::unique_ptr<ObjectStore>> OpenStoreOfJob(KubeClient& kube, Runtime& runtime,
                                                    const Job& job);

}  // namespace lambdadnn
