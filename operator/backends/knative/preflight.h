// SPDX-License-Identifier: Apache-2.0
// Whether a cluster would accept a Knative Service: a server-side dry run, which Knative extends to
// the pod if its configuration allows.
#pragma once

#include <functional>

#include "common/json/json_reader.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// `try_create` creates an object as a trial that leaves nothing. kFailedPrecondition: it would not
// be taken, in the cluster's words and with the next step. Other errors: the cluster does not
// answer. What only a quota that is used up refuses is no reason: others end.
Status PreflightService(
    Json service, const std::function<Result<Json>(const ResourceType&, const Json&)>& try_create);

}  // namespace lambdadnn
