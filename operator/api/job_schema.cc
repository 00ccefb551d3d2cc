// SPDX-License-Identifier: Apache-2.0
#include "operator/api/job_schema.h"

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/json/yaml.h"
#include "operator/api/embedded_crd.h"

namespace lambdadnn {

const Json& JobCrd() {
  static const Json kCrd = [] {
    YamlParseResult parsed = ParseYaml(EmbeddedCrd());
    LDNN_CHECK(!parsed.error, "the embedded CRD is not YAML: " + parsed.error->message);
    LDNN_CHECK(parsed.documents.size() == 1, "the embedded CRD must be one document");
    return std::move(parsed.documents[0].value);
  }();
  return kCrd;
}

const StructuralSchema& JobSchema() {
  static const StructuralSchema kSchema = [] {
    const Json::json_pointer pointer("/spec/versions/0/schema/openAPIV3Schema");
    LDNN_CHECK(JobCrd().contains(pointer), "the embedded CRD has no schema");
    auto compiled = StructuralSchema::Compile(JobCrd().at(pointer));
    LDNN_CHECK(compiled.ok(), compiled.status().ToString());
    return std::move(compiled).value();
  }();
  return kSchema;
}

const StructuralSchema* FindFieldSchema(std::string_view path) {
  const StructuralSchema* schema = &JobSchema();
  for (const std::string& segment : Split(path, '.')) {
    const size_t bracket = segment.find('[');
    const std::string name = segment.substr(0, bracket);
    const auto found = schema->properties.find(name);
    if (found != schema->properties.end()) {
      schema = &found->second;
    } else if (schema->additional_properties != nullptr) {
      schema = schema->additional_properties.get();
    } else {
      return nullptr;
    }
    if (bracket != std::string::npos) {
      if (schema->items == nullptr) return nullptr;
      schema = schema->items.get();
    }
  }
  return schema;
}

}  // namespace lambdadnn
