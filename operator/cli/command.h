// SPDX-License-Identifier: Apache-2.0
// One sub-command of `lambdadnn`: a file that registers its options and a function that runs it and
// returns the exit code. Commands print results to stdout and diagnostics to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "common/base/runtime.h"
#include "common/base/status.h"

namespace lambdadnn {

// Documented in docs/formats.md and tested.
enum ExitCode : int {
  kExitComplete = 0,
  kExitJobFailed = 1,
  kExitUsage = 2,
  kExitInfeasible = 3,
  kExitEnvironment = 4,
  kExitInterrupted = 130,
};

// The exit code that a Status ends a command with: bad input 2, everything of the environment 4.
int ExitCodeOf(const Status& status);
// Prints "error: message" to stderr and returns ExitCodeOf(status).
int FailCommand(const Status& status);

struct CommandContext {
  Runtime& runtime;
  std::string program_path;  // of this executable: siblings are found beside it
  int exit_code = kExitComplete;
  // Called as a plugin of kubectl: commands that exist for this machine and for a cluster mean the
  // cluster.
  bool kubectl_plugin = false;
};

// Registers one sub-command on `app`; its callback sets context.exit_code.
using AddCommand = void (*)(CLI::App& app, CommandContext& context);

void AddCompletionCommand(CLI::App& app, CommandContext& context);
void AddDatasetCommand(CLI::App& app, CommandContext& context);
void AddDeleteCommand(CLI::App& app, CommandContext& context);
void AddDoctorCommand(CLI::App& app, CommandContext& context);
void AddEventsCommand(CLI::App& app, CommandContext& context);
void AddHostCommand(CLI::App& app, CommandContext& context);
void AddLogsCommand(CLI::App& app, CommandContext& context);
void AddPlanCommand(CLI::App& app, CommandContext& context);
void AddPredictCommand(CLI::App& app, CommandContext& context);
void AddProfileCommand(CLI::App& app, CommandContext& context);
void AddReportCommand(CLI::App& app, CommandContext& context);
void AddResumeCommand(CLI::App& app, CommandContext& context);
void AddRunCommand(CLI::App& app, CommandContext& context);
void AddStatusCommand(CLI::App& app, CommandContext& context);
void AddSubmitCommand(CLI::App& app, CommandContext& context);
void AddSuspendCommand(CLI::App& app, CommandContext& context);
void AddVersionCommand(CLI::App& app, CommandContext& context);

}  // namespace lambdadnn
