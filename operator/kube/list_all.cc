// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/list_all.h"

#include <iterator>
#include <utility>

namespace lambdadnn {
namespace {

constexpr int kPageSize = 500;

Status ForEachPage(KubeClient& kube, const ResourceType& type, const std::string& namespace_name,
                   const std::string& label_selector, const std::function<void(KubeList&)>& use) {
  std::string next;
  do {
    LDNN_ASSIGN_OR_RETURN(KubeList page,
                          kube.List(type, namespace_name, label_selector, kPageSize, next));
    next = page.continue_token;
    use(page);
  } while (!next.empty());
  return OkStatus();
}

}  // namespace

Result<KubeList> ListAll(KubeClient& kube, const ResourceType& type,
                         const std::string& namespace_name, const std::string& label_selector) {
  KubeList all;
  LDNN_RETURN_IF_ERROR(ForEachPage(kube, type, namespace_name, label_selector, [&](KubeList& page) {
    std::move(page.items.begin(), page.items.end(), std::back_inserter(all.items));
    all.resource_version = page.resource_version;
  }));
  return all;
}

Status ForEachListed(KubeClient& kube, const ResourceType& type, const std::string& namespace_name,
                     const std::string& label_selector,
                     const std::function<void(const Json&)>& each) {
  return ForEachPage(kube, type, namespace_name, label_selector, [&](const KubeList& page) {
    for (const Json& object : page.items) each(object);
  });
}

}  // namespace lambdadnn
