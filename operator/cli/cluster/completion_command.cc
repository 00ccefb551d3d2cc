// SPDX-License-Identifier: Apache-2.0
// `lambdadnn completion SHELL`: prints a script that completes this program's commands.
#include <cstdio>
#include <memory>

#include "operator/cli/cluster/completion_script.h"
#include "operator/cli/command.h"

namespace lambdadnn {

void AddCompletionCommand(CLI::App& app, CommandContext& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "Print a script that completes commands in a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer("Example: lambdadnn completion bash > /etc/bash_completion.d/lambdadnn");
  command->callback([shell, &app, &context] {
    // Words after `kubectl lambdadnn` are kubectl's to complete.
    std::fputs(CompletionScript(app, *shell, "lambdadnn").c_str(), stdout);
    context.exit_code = kExitComplete;
  });
}

}  // namespace lambdadnn
