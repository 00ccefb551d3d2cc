// SPDX-License-Identifier: Apache-2.0
#include "operator/api/job_file.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/json/yaml.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_schema.h"
#include "operator/api/job_validation.h"

namespace lambdadnn {
namespace {

// Fields that hold a URI, where a person may write a path.
constexpr const char* kUriFields[] = {"spec.dataset.uri", "spec.dataset.testUri",
                                      "spec.model.torchScript.uri", "spec.objectStore.uri",
                                      "spec.checkpoint.resumeFrom"};
constexpr size_t kMaxShownProblems = 20;

struct Override {
  std::string path;
  std::string value;
  std::string text;  // as given
};

Json* FindField(Json* object, std::string_view path) {
  for (const std::string& name : Split(path, '.')) {
    if (!object->is_object() || !object->contains(name)) return nullptr;
    object = &(*object)[name];
  }
  return object;
}

void ResolvePath(const std::string& folder, Json* uri) {
  if (!uri->is_string()) return;
  const std::string text = uri->get<std::string>();
  if (text.empty() || text.find("://") != std::string::npos) return;
  const std::filesystem::path path = std::filesystem::path(folder) / text;
  std::string absolute = path.lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  *uri = "file://" + absolute;
}

Status BadOverride(const Override& override, const std::string& problem) {
  return InvalidArgumentError("--set " + override.text + ": " + problem);
}

Result<Override> ParseOverride(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return InvalidArgumentError("--set " + text + ": write it as spec.field.path=value");
  }
  return Override{text.substr(0, equals), text.substr(equals + 1), text};
}

// The value for the field: text where the schema says so, YAML otherwise.
Result<Json> OverrideValue(const Override& override) {
  const StructuralSchema* schema = FindFieldSchema(override.path);
  const bool quoted = override.value.starts_with('"') || override.value.starts_with('\'');
  if (schema != nullptr && schema->type == StructuralSchema::Type::kString && !quoted) {
    return Json(override.value);
  }
  YamlParseResult parsed = ParseYaml(override.value);
  if (parsed.error) return BadOverride(override, parsed.error->message);
  if (parsed.documents.size() != 1) return BadOverride(override, "the value must be one value");
  return std::move(parsed.documents[0].value);
}

Status Apply(const Override& override, const std::string& current_folder, Json* object) {
  const std::vector<std::string> names = Split(override.path, '.');
  Json* parent = object;
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    if (parent->is_object() && override.value.empty() && !parent->contains(names[i])) {
      return OkStatus();
    }
    if (!parent->is_object()) return BadOverride(override, names[i] + " is not a map of fields");
    parent = &(*parent)[names[i]];
    if (parent->is_null()) *parent = Json::object();
  }
  if (!parent->is_object()) {
    return BadOverride(override, "the field above " + names.back() + " is not a map of fields");
  }
  if (override.value.empty()) {
    parent->erase(names.back());
    return OkStatus();
  }
  LDNN_ASSIGN_OR_RETURN(Json value, OverrideValue(override));
  if (std::find(std::begin(kUriFields), std::end(kUriFields), override.path) !=
      std::end(kUriFields)) {
    ResolvePath(current_folder, &value);
  }
  (*parent)[names.back()] = std::move(value);
  return OkStatus();
}

bool IsJob(const Json& value) {
  return value.is_object() && value.contains("kind") && value.at("kind") == kJobKind;
}

// The one document that is a job.
Result<YamlDocument> ChooseDocument(std::vector<YamlDocument> documents, const std::string& name) {
  if (documents.empty()) {
    return InvalidArgumentError(name +
                                ":1: holds nothing; write a job, such as "
                                "examples/quickstart/job.yaml");
  }
  if (documents.size() == 1) return std::move(documents[0]);
  const auto jobs = std::count_if(documents.begin(), documents.end(),
                                  [](const YamlDocument& each) { return IsJob(each.value); });
  if (jobs != 1) {
    return InvalidArgumentError(name + ":1: holds " + std::to_string(documents.size()) +
                                " documents, of which " + std::to_string(jobs) + " are a " +
                                kJobKind + "; exactly one must be");
  }
  return std::move(*std::find_if(documents.begin(), documents.end(),
                                 [](const YamlDocument& each) { return IsJob(each.value); }));
}

// The override that set the field at `path` or one above it; null if the file did.
const Override* OverrideOf(const std::vector<Override>& overrides, const std::string& path) {
  for (auto each = overrides.rbegin(); each != overrides.rend(); ++each) {
    if (path == each->path || path.starts_with(each->path + ".") ||
        path.starts_with(each->path + "[")) {
      return &*each;
    }
  }
  return nullptr;
}

Status Describe(const std::vector<FieldError>& errors, const YamlDocument& document,
                const std::string& name, const std::vector<Override>& overrides) {
  struct Problem {
    int line;
    std::string text;
  };
  std::vector<Problem> problems;
  for (const FieldError& error : errors) {
    const std::string what = error.path.empty() ? error.message : error.path + ": " + error.message;
    if (const Override* override = OverrideOf(overrides, error.path)) {
      problems.push_back({0, "--set " + override->text + ": " + what});
    } else {
      const int line = document.LineOf(error.path);
      problems.push_back({line, name + ":" + std::to_string(line) + ": " + what});
    }
  }
  std::stable_sort(problems.begin(), problems.end(),
                   [](const Problem& a, const Problem& b) { return a.line < b.line; });
  std::vector<std::string> lines;
  for (const Problem& problem : problems) {
    if (lines.size() == kMaxShownProblems) {
      lines.push_back(name + ": and " + std::to_string(problems.size() - lines.size()) +
                      " problems more");
      break;
    }
    lines.push_back(problem.text);
  }
  return InvalidArgumentError(Join(lines, "\nerror: "));
}

}  // namespace

Result<JobFile> ParseJobFile(std::string_view text, const std::string& name,
                             const std::string& folder, std::span<const std::string> overrides) {
  YamlParseResult parsed = ParseYaml(text);
  if (parsed.error) {
    return InvalidArgumentError(name + ":" + std::to_string(parsed.error->line) + ": column " +
                                std::to_string(parsed.error->column) + ": " +
                                parsed.error->message);
  }
  LDNN_ASSIGN_OR_RETURN(YamlDocument document, ChooseDocument(std::move(parsed.documents), name));
  JobFile file;
  file.object = document.value;
  for (const char* field : kUriFields) {
    if (Json* uri = FindField(&file.object, field)) ResolvePath(folder, uri);
  }
  std::vector<Override> parsed_overrides;
  std::error_code ignored;
  const std::string current_folder = std::filesystem::current_path(ignored).string();
  for (const std::string& each : overrides) {
    LDNN_ASSIGN_OR_RETURN(Override override, ParseOverride(each));
    if (!file.object.is_object()) break;
    LDNN_RETURN_IF_ERROR(Apply(override, current_folder, &file.object));
    parsed_overrides.push_back(std::move(override));
  }
  const std::vector<FieldError> errors = ValidateJob(file.object);
  if (!errors.empty()) return Describe(errors, document, name, parsed_overrides);
  Json full = file.object;
  JobSchema().ApplyDefaults(&full);
  LDNN_ASSIGN_OR_RETURN(file.job, DecodeJob(full));
  return file;
}

Result<JobFile> LoadJobFile(const std::string& path, std::span<const std::string> overrides) {
  if (path == "-") {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    std::error_code ignored;
    return ParseJobFile(text, "standard input", std::filesystem::current_path(ignored).string(),
                        overrides);
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return InvalidArgumentError(path + ": is a folder; name the job file in it");
  }
  LDNN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const std::filesystem::path absolute = std::filesystem::absolute(path, ignored);
  return ParseJobFile(text, path, absolute.parent_path().string(), overrides);
}

}  // namespace lambdadnn
