// SPDX-License-Identifier: Apache-2.0
// The report, the model and the event log of a job in a cluster, fetched from its object store.
#pragma once

#include <string>

#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/run/run_results.h"

namespace lambdadnn {

// Copies the results of job `name` into `directory` (made if missing). kFailedPrecondition: there
// are none yet; otherwise the error says which of API server and store could not be used.
Result<RunResults> FetchResults(Cluster& cluster, Runtime& runtime, const std::string& name,
                                const std::string& directory);

}  // namespace lambdadnn
