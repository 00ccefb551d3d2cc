// SPDX-License-Identifier: Apache-2.0
// Lists all objects of a kind once, page by page. To follow objects, use an Informer.
#pragma once

#include <functional>
#include <string>

#include "operator/kube/kube_client.h"

namespace lambdadnn {

// Every object of a kind, in all namespaces when `namespace_name` is empty. resource_version is the
// last page's. The errors are List's.
Result<KubeList> ListAll(KubeClient& kube, const ResourceType& type,
                         const std::string& namespace_name, const std::string& label_selector = "");

// The same for callers that keep no object: one page is in memory at a time.
Status ForEachListed(KubeClient& kube, const ResourceType& type, const std::string& namespace_name,
                     const std::string& label_selector,
                     const std::function<void(const Json&)>& each);

}  // namespace lambdadnn
