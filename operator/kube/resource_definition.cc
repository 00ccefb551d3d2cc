// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/resource_definition.h"

namespace lambdadnn {

Result<ResourceDefinition> ReadResourceDefinition(const Json& crd) {
  try {
    ResourceDefinition definition;
    const Json& spec = crd.at("spec");
    const Json& versions = spec.at("versions");
    if (!versions.is_array() || versions.size() != 1) {
      return InvalidArgumentError("CRD: spec.versions must hold exactly one version");
    }
    const Json& version = versions.at(0);
    definition.type = {spec.at("group").get<std::string>(), version.at("name").get<std::string>(),
                       spec.at("names").at("plural").get<std::string>(),
                       spec.at("names").at("kind").get<std::string>()};
    definition.has_status =
        version.contains("subresources") && version.at("subresources").contains("status");
    LDNN_ASSIGN_OR_RETURN(auto schema,
                          StructuralSchema::Compile(version.at("schema").at("openAPIV3Schema")));
    definition.schema = std::make_shared<const StructuralSchema>(std::move(schema));
    return definition;
  } catch (const Json::exception& error) {
    return InvalidArgumentError(std::string("CRD: ") + error.what());
  }
}

ResourceDefinition EventDefinition() {
  ResourceDefinition definition;
  definition.type = EventType();
  definition.time_to_live = std::chrono::hours(1);
  return definition;
}

}  // namespace lambdadnn
