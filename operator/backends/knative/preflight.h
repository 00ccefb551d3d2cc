// SPDX-License-Identifier: Apache-2.0
// Whether a cluster would accept a Knative Service: a server-side dry run, which Knative extends to
// the pod if its configuration allows.
#pragma once

#include <functional>

#include "common/json/json_reader.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// `try_create` is a server-side dry run of a create. kFailedPrecondition: the Service would be
// refused, with the cluster's message and the next step. Other errors: the cluster does not answer.
// A refusal because of a used-up quota does not count, since other pods end.
Status PreflightService(
    Json service, const std::function<Result<Json>(const ResourceType&, const Json&)>& try_create);

}  // namespace lambdadnn
