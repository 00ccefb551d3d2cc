// SPDX-License-Identifier: Apache-2.0
// docs/reference/api.md is written from the CRD. To write it anew after a change of the CRD:
//   LAMBDADNN_UPDATE_DOCS=1 build/no-torch/bin/api_test --gtest_filter=ApiDocs.*
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/files.h"
#include "operator/api/job_schema.h"
#include "operator/api/job_validation.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

std::string TypeText(const StructuralSchema& schema) {
  switch (schema.type) {
    case StructuralSchema::Type::kObject:
      return schema.additional_properties != nullptr ? "map" : "object";
    case StructuralSchema::Type::kArray:
      return "list";
    case StructuralSchema::Type::kInteger:
      return "whole number";
    case StructuralSchema::Type::kNumber:
      return "number";
    case StructuralSchema::Type::kBoolean:
      return "true, false";
    case StructuralSchema::Type::kString:
      if (schema.pattern.find("Mi|") != std::string::npos) return "memory";
      if (schema.pattern.find("[eE]") != std::string::npos) return "decimal as text";
      if (schema.pattern.find("s3|file") != std::string::npos) return "URI";
      return schema.format == "date-time" ? "time" : "text";
    default:
      return "any";
  }
}

std::string Escaped(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, "\\");
  }
  return text;
}

std::string Limits(const StructuralSchema& schema) {
  std::string text;
  for (const std::string& value : schema.enumeration) {
    text += (text.empty() ? "" : ", ") + ("`" + value + "`");
  }
  const bool bounded = schema.maximum && *schema.maximum < 2e9;
  if (schema.minimum && schema.maximum && bounded && *schema.minimum > -2e9) {
    text += std::to_string(static_cast<int64_t>(*schema.minimum)) + " to " +
            std::to_string(static_cast<int64_t>(*schema.maximum));
  } else if (schema.minimum && *schema.minimum > -2e9) {
    text += "at least " + std::to_string(static_cast<int64_t>(*schema.minimum));
  }
  return text;
}

void AppendRow(const std::string& path, const StructuralSchema& schema, bool required,
               std::string* table) {
  const std::string fallback = schema.default_value && !schema.default_value->is_object()
                                   ? "`" + schema.default_value->dump() + "`"
                                   : (required ? "required" : "");
  const std::string limits = Limits(schema);
  *table += "| `" + path + "` | " + TypeText(schema) + (limits.empty() ? "" : ": " + limits) +
            " | " + fallback + " | " + Escaped(schema.description) + " |\n";
}

void AppendFields(const StructuralSchema& schema, const std::string& path, std::string* table) {
  for (const auto& [name, property] : schema.properties) {
    const bool required =
        std::find(schema.required.begin(), schema.required.end(), name) != schema.required.end();
    const std::string field = path + "." + name;
    AppendRow(field, property, required, table);
    AppendFields(property, field, table);
    if (property.items != nullptr) AppendFields(*property.items, field + "[]", table);
  }
}

std::string RenderDocs() {
  std::string text =
      "# The API: ServerlessTrainingJob\n\n"
      "Written from `crds/lambdadnn.io_serverlesstrainingjobs.yaml` by "
      "`tests/unit/operator/api/api_docs_test.cc`; a test keeps the two in step.\n\n"
      "Group `lambdadnn.io`, version `v1alpha1`, kind `ServerlessTrainingJob`, short name `stj`. "
      "Decimals are text (`\"0.1\"`), memory is a quantity of whole MiB (`1728Mi`, `2Gi`), "
      "durations "
      "are whole seconds. A complete small job is `examples/quickstart/job.yaml`.\n\n";
  for (const char* section : {"spec", "status"}) {
    text += "## " + std::string(section) +
            "\n\n| field | value | default | meaning |\n|---|---|---|---|\n";
    AppendFields(JobSchema().properties.at(section), section, &text);
    text += "\n";
  }
  text += "## Rules between fields\n\n| where | rule |\n|---|---|\n";
  for (const JobRule& rule : JobRules()) {
    const std::string path =
        *rule.field == '\0' ? rule.path : std::string(rule.path) + "." + rule.field;
    text += "| `" + path + "` | " + Escaped(rule.message) + " |\n";
  }
  return text;
}

TEST(ApiDocs, AreWrittenFromTheCrd) {
  const std::string file = SourcePath("docs/reference/api.md");
  if (GetEnvironment("LAMBDADNN_UPDATE_DOCS")) {
    ASSERT_TRUE(WriteFileAtomically(file, RenderDocs()).ok());
  }
  const auto text = ReadFile(file);
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_EQ(*text, RenderDocs())
      << "docs/reference/api.md is out of date: see the top of this file";
}

}  // namespace
}  // namespace lambdadnn
