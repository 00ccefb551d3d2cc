// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/command.h"

#include <cstdio>

namespace lambdadnn {

int ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return kExitComplete;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
    case StatusCode::kUnimplemented:
      return kExitUsage;
    case StatusCode::kCancelled:
      return kExitInterrupted;
    default:
      return kExitEnvironment;
  }
}

int FailCommand(const Status& status) {
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return ExitCodeOf(status);
}

void AddVersionCommand(CLI::App& app, CommandContext&) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->footer("Example: lambdadnn version");
  command->callback([] { std::printf("lambdadnn %s\n", LAMBDADNN_VERSION); });
}

}  // namespace lambdadnn
