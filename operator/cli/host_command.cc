// SPDX-License-Identifier: Apache-2.0
// `lambdadnn host`: the function host of the Local backend as a program of its own.
#include <unistd.h>

#include <filesystem>

#include "operator/backends/local/host_server.h"
#include "operator/backends/local/machine.h"
#include "operator/cli/command.h"

namespace lambdadnn {
namespace {

struct HostArguments {
  std::string socket;
  std::string directory;
  int parent = 0;
  bool no_cgroups = false;
  int64_t memory_mib = 0;
};

int RunHostCommand(const HostArguments& arguments, bool with_parent, CommandContext& context) {
  std::error_code error;
  HostProgramOptions options;
  options.socket = arguments.socket;
  options.host.directory = std::filesystem::absolute(arguments.directory, error).string();
  options.host.program_directory =
      std::filesystem::path(context.program_path).parent_path().string();
  options.host.use_cgroups = !arguments.no_cgroups;
  options.host.memory_mib = arguments.memory_mib;
  options.host.gpus = MeasureMachine().gpus;
  if (with_parent) {
    options.host.parent = arguments.parent > 0 ? static_cast<pid_t>(arguments.parent) : ::getppid();
  }
  const Status status = RunHost(context.runtime, options);
  return status.ok() ? kExitComplete : FailCommand(status);
}

}  // namespace

void AddHostCommand(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "host",
      "Own the function processes of this machine\n"
      "Example: lambdadnn host --socket /run/lambdadnn/host.sock --dir /var/lib/lambdadnn");
  auto arguments = std::make_shared<HostArguments>();
  command->add_option("--socket", arguments->socket, "Unix socket to serve (made with mode 0600)")
      ->required();
  command->add_option("--dir", arguments->directory, "Folder for logs and working files")
      ->required();
  CLI::Option* parent =
      command
          ->add_option("--with-parent", arguments->parent,
                       "End, and kill all functions, when the parent process ends; its pid may "
                       "follow, so that one that has ended already is noticed")
          ->expected(0, 1);
  command
      ->add_option("--memory", arguments->memory_mib,
                   "Most memory of all functions together, in MiB; jobs without capacity wait")
      ->check(CLI::PositiveNumber);
  command->add_flag("--no-cgroups", arguments->no_cgroups,
                    "Let functions pace themselves even where control groups could be made");
  command->callback([arguments, parent, &context] {
    context.exit_code = RunHostCommand(*arguments, parent->count() > 0, context);
  });
}

}  // namespace lambdadnn
