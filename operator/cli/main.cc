// SPDX-License-Identifier: Apache-2.0
// `lambdadnn`: the command line. Every sub-command is one file beside this one.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/cli/command.h"
#include "operator/cli/usage_error.h"

namespace {

constexpr lambdadnn::AddCommand kCommands[] = {
    lambdadnn::AddCompletionCommand, lambdadnn::AddDatasetCommand, lambdadnn::AddDeleteCommand,
    lambdadnn::AddDoctorCommand,     lambdadnn::AddEventsCommand,  lambdadnn::AddHostCommand,
    lambdadnn::AddLogsCommand,       lambdadnn::AddPlanCommand,    lambdadnn::AddPredictCommand,
    lambdadnn::AddProfileCommand,    lambdadnn::AddReportCommand,  lambdadnn::AddResumeCommand,
    lambdadnn::AddRunCommand,        lambdadnn::AddStatusCommand,  lambdadnn::AddSubmitCommand,
    lambdadnn::AddSuspendCommand,    lambdadnn::AddVersionCommand,
};

}  // namespace

int main(int argc, char** argv) {
  lambdadnn::SystemClock clock;
  lambdadnn::ThreadExecutor executor;
  lambdadnn::SystemRandom random;
  lambdadnn::Runtime runtime{clock, executor, random};
  std::error_code ignored;
  lambdadnn::CommandContext context{runtime,
                                    std::filesystem::read_symlink("/proc/self/exe", ignored)};
  // kubectl calls the program that it finds under this name for `kubectl lambdadnn`.
  context.kubectl_plugin =
      argc > 0 && std::filesystem::path(argv[0]).filename() == "kubectl-lambdadnn";

  CLI::App app{"Trains neural networks on serverless functions, predictably.",
               context.kubectl_plugin ? "kubectl lambdadnn" : "lambdadnn"};
  app.footer(
      "Example: lambdadnn run examples/quickstart/job.yaml\n"
      "         lambdadnn COMMAND --help says more, with an example of each.");
  app.require_subcommand(1);
  for (const lambdadnn::AddCommand add : kCommands) add(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    const std::vector<std::string> words(argv + 1, argv + argc);
    const std::string what = lambdadnn::DescribeUsageError(app, error, words);
    std::fprintf(stderr, "error: %s\n", what.c_str());
    return lambdadnn::kExitUsage;
  }
  return context.exit_code;
}
