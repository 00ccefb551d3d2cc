// SPDX-License-Identifier: Apache-2.0
// URL paths of API objects. Names are percent-encoded, so that a user's input cannot change the
// path.
#pragma once

#include <string>

#include "operator/kube/kube_client.h"

namespace lambdadnn {

// "/apis/lambdadnn.io/v1alpha1/namespaces/NS/serverlesstrainingjobs"; an empty namespace = the
// whole cluster, or a kind without namespaces.
std::string CollectionPath(const ResourceType& type, const std::string& namespace_name);
std::string ObjectPath(const ResourceType& type, const ObjectName& name, Subresource subresource);

}  // namespace lambdadnn
