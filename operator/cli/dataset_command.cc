// SPDX-License-Identifier: Apache-2.0
// `lambdadnn dataset …` runs `lambdadnn-dataset …` beside this program: it makes data sets, of
// which this program reads no more than their begin.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "operator/cli/command.h"

namespace lambdadnn {

void AddDatasetCommand(CLI::App& app, CommandContext& context) {
  CLI::App* const command = app.add_subcommand(
      "dataset", "Make and examine data sets (lambdadnn dataset --help says how)");
  command->prefix_command();
  command->set_help_flag();  // --help belongs to the other program
  command->callback([command, &context] {
    const std::string program =
        (std::filesystem::path(context.program_path).parent_path() / "lambdadnn-dataset").string();
    std::vector<std::string> arguments = command->remaining();
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    context.exit_code = FailCommand(NotFoundError(
        "cannot run " + program + ": " + std::strerror(errno) + "; install it beside lambdadnn"));
  });
}

}  // namespace lambdadnn
