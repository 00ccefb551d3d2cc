// SPDX-License-Identifier: Apache-2.0
// `lambdadnn report DIR|FILE`: shows or renders the report of a run.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "common/base/files.h"
#include "operator/cli/command.h"
#include "operator/cli/report/report_html.h"

namespace lambdadnn {
namespace {

struct ReportOptions {
  std::string path;
  std::string output = "text";
  std::string file;
};

int Report(const ReportOptions& options) {
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
  std::string rendered;
  if (options.output == "json") rendered = report->dump(2) + "\n";
  if (options.output == "html") rendered = RenderReportHtml(*report);
  if (options.output == "text") rendered = RenderReportText(*report);
  if (options.file.empty()) {
    std::fwrite(rendered.data(), 1, rendered.size(), stdout);
    return kExitComplete;
  }
  const Status written = WriteFileAtomically(options.file, rendered);
  if (!written.ok()) return FailCommand(written);
  std::printf("%s\n", options.file.c_str());
  return kExitComplete;
}

}  // namespace

void AddReportCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Show or render the report of a run");
  command->add_option("run", options->path, "Folder of a run, or its report.json")->required();
  command->add_option("-o,--output", options->output, "text, json or html")
      ->check(CLI::IsMember({"text", "json", "html"}));
  command->add_option("--file", options->file, "Write to this file instead of standard output");
  command->footer("Example: lambdadnn report runs/quickstart -o html --file report.html");
  command->callback([options, &context] { context.exit_code = Report(*options); });
}

}  // namespace lambdadnn
