// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/resource_path.h"

#include "common/base/percent_encoding.h"

namespace lambdadnn {

std::string CollectionPath(const ResourceType& type, const std::string& namespace_name) {
  std::string path = type.group.empty() ? "/api/" : "/apis/" + type.group + "/";
  path += type.version;
  if (!namespace_name.empty()) path += "/namespaces/" + PercentEncode(namespace_name);
  return path + "/" + type.plural;
}

std::string ObjectPath(const ResourceType& type, const ObjectName& name, Subresource subresource) {
  return CollectionPath(type, name.namespace_name) + "/" + PercentEncode(name.name) +
         (subresource == Subresource::kStatus ? "/status" : "");
}

}  // namespace lambdadnn
