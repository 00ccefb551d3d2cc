// SPDX-License-Identifier: Apache-2.0
// `lambdadnn`: the command line. Every sub-command is one file beside this one.
#include <CLI/CLI.hpp>
#include <filesystem>

#include "common/base/runtime.h"
#include "operator/cli/command.h"

namespace {

constexpr lambdadnn::AddCommand kCommands[] = {
    lambdadnn::AddDatasetCommand, lambdadnn::AddHostCommand,    lambdadnn::AddPlanCommand,
    lambdadnn::AddPredictCommand, lambdadnn::AddProfileCommand, lambdadnn::AddReportCommand,
    lambdadnn::AddRunCommand,     lambdadnn::AddVersionCommand,
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

  CLI::App app{"Trains neural networks on serverless functions, predictably.", "lambdadnn"};
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return "error: " + std::string(error.what()) + "; see " + failed->get_name() + " --help\n";
  });
  for (const lambdadnn::AddCommand add : kCommands) add(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? lambdadnn::kExitComplete : lambdadnn::kExitUsage;
  }
  return context.exit_code;
}
