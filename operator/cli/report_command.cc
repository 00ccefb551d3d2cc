// SPDX-License-Identifier: Apache-2.0
// `lambdadnn report DIR|FILE|JOB`: shows or renders the report of a run on this machine, or fetches
// that of a job in a cluster.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "common/base/files.h"
#include "common/json/dump_json.h"
#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/cluster_report.h"
#include "operator/cli/command.h"
#include "operator/cli/report/report_html.h"

namespace lambdadnn {
namespace {

struct ReportOptions {
  std::string path;
  std::string output = "text";
  std::string file;
  std::string directory;
  ClusterFlags cluster;
};

int Print(const ReportOptions& options, const Json& report) {
  std::string rendered;
  if (options.output == "json") rendered = DumpJson(report, 2) + "\n";
  if (options.output == "html") rendered = RenderReportHtml(report);
  if (options.output == "text") rendered = RenderReportText(report);
  if (options.file.empty()) {
    std::fwrite(rendered.data(), 1, rendered.size(), stdout);
    return kExitComplete;
  }
  const Status written = WriteFileAtomically(options.file, rendered);
  if (!written.ok()) return FailCommand(written);
  std::printf("%s\n", options.file.c_str());
  return kExitComplete;
}

int ReportOfCluster(const ReportOptions& options, CommandContext& context) {
  auto cluster = OpenCluster(context.runtime, options.cluster);
  if (!cluster.ok()) return FailCommand(cluster.status());
  const std::string directory =
      options.directory.empty() ? "runs/" + options.path : options.directory;
  const auto results = FetchResults(*cluster, context.runtime, options.path, directory);
  if (!results.ok()) return FailCommand(results.status());
  if (results->report.is_object() && (options.output != "text" || !options.file.empty())) {
    return Print(options, results->report);
  }
  for (const std::string& line : DescribeResults(*results, directory)) {
    std::printf("%s\n", line.c_str());
  }
  return results->report.is_object() ? kExitComplete : kExitEnvironment;
}

// A name that is no path here is a job's, if a cluster is meant or there is one.
bool IsInCluster(const ReportOptions& options, const CommandContext& context) {
  const ClusterFlags& flags = options.cluster;
  if (context.kubectl_plugin || !options.directory.empty() || !flags.namespace_name.empty() ||
      !flags.context.empty() || !flags.kubeconfig.empty()) {
    return true;
  }
  std::error_code ignored;
  const bool is_path = options.path.find_first_of("/.") != std::string::npos ||
                       std::filesystem::exists(options.path, ignored);
  return !is_path && OpenCluster(context.runtime, flags).ok();
}

int Report(const ReportOptions& options, CommandContext& context) {
  if (IsInCluster(options, context)) return ReportOfCluster(options, context);
  std::string path = options.path;
  if (std::filesystem::is_directory(path)) path += "/report.json";
  const auto text = ReadFile(path);
  if (!text.ok()) {
    return FailCommand(
        Status(StatusCode::kInvalidArgument,
               text.status().message() + "; name the folder of a finished run or its report.json"));
  }
  const auto report = ParseJson(*text);
  if (!report.ok() || !report->is_object()) {
    return FailCommand(InvalidArgumentError(
        path +
        " is not a report: " + (report.ok() ? "no JSON object" : report.status().message())));
  }
  return Print(options, *report);
}

}  // namespace

void AddReportCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Show or render the report of a run or job");
  command
      ->add_option("run", options->path,
                   "Folder of a run, its report.json, or the name of a job in a cluster")
      ->required();
  command->add_option("-o,--output", options->output, "text, json or html")
      ->check(CLI::IsMember({"text", "json", "html"}));
  command->add_option("--file", options->file, "Write to this file instead of standard output");
  command->add_option("--out", options->directory,
                      "Of a job in a cluster: folder for its report, model and events (default: "
                      "runs/NAME)");
  AddClusterFlags(command, &options->cluster);
  command->footer(
      "Example: lambdadnn report runs/quickstart -o html --file report.html\n"
      "         lambdadnn report digits -n team");
  command->callback([options, &context] { context.exit_code = Report(*options, context); });
}

}  // namespace lambdadnn
