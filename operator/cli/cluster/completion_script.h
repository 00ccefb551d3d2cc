// SPDX-License-Identifier: Apache-2.0
// Scripts that complete commands, flags and names of jobs in a shell, written from the commands
// themselves.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lambdadnn {

// `shell` is bash, zsh or fish; `program` what the user types.
std::string CompletionScript(const CLI::App& app, const std::string& shell,
                             const std::string& program);

}  // namespace lambdadnn
