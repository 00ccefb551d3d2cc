// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/run_results.h"

#include <algorithm>

#include "common/base/files.h"
#include "common/json/dump_json.h"
#include "common/protocol/object_keys.h"
#include "operator/cli/report/report_html.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// Two levels of spaces per depth; maps and scalars are all that a profile has.
void AppendYaml(const Json& value, int depth, std::string* text) {
  for (const auto& [name, field] : value.items()) {
    text->append(static_cast<size_t>(depth) * 2, ' ');
    *text += name + ":";
    if (field.is_object()) {
      *text += "\n";
      AppendYaml(field, depth + 1, text);
    } else {
      // JSON scalars and lists are YAML.
      *text += " " + DumpJson(field) + "\n";
    }
  }
}

}  // namespace

RunResults CollectResults(ObjectStore& store, const Job& job, const std::string& directory) {
  RunResults results;
  const std::string prefix = ResultKey(JobPrefix(job), "");
  Result<std::vector<ObjectInfo>> objects = ListAll(store, prefix);
  if (!objects.ok()) {
    results.problems.push_back(objects.status().message());
    return results;
  }
  for (const ObjectInfo& object : *objects) {
    const std::string name = object.key.substr(prefix.size());
    Result<Bytes> bytes = store.Get(object.key);
    Status copied = bytes.status();
    if (bytes.ok()) copied = WriteFileAtomically(directory + "/" + name, AsText(*bytes));
    if (!copied.ok()) {
      results.problems.push_back(copied.message());
      continue;
    }
    results.files.push_back(name);
    if (name != "report.json") continue;
    Result<Json> report = ParseJson(AsText(*bytes));
    if (!report.ok()) continue;
    results.report = *report;
    const Status html =
        WriteFileAtomically(directory + "/report.html", RenderReportHtml(results.report));
    if (html.ok()) results.files.push_back("report.html");
  }
  return results;
}

std::vector<std::string> DescribeResults(const RunResults& results, const std::string& directory) {
  std::vector<std::string> lines;
  if (results.report.is_object()) {
    lines.push_back("");
    lines.push_back(RenderReportText(results.report));
  }
  const auto has = [&](const char* name) {
    return std::find(results.files.begin(), results.files.end(), name) != results.files.end();
  };
  if (has("report.html")) lines.push_back("report: " + directory + "/report.html");
  if (has("model.safetensors")) lines.push_back("model:  " + directory + "/model.safetensors");
  if (has("model-best.safetensors")) {
    lines.push_back("best:   " + directory + "/model-best.safetensors");
  }
  if (has("model.pt")) lines.push_back("        " + directory + "/model.pt");
  for (const std::string& problem : results.problems) lines.push_back("warning: " + problem);
  return lines;
}

std::string FormatProfile(const Json& profile, const std::string& format) {
  if (format == "json") return DumpJson(profile, 2) + "\n";
  std::string text = "spec:\n";
  AppendYaml(profile, 1, &text);
  return text;
}

}  // namespace lambdadnn
