// SPDX-License-Identifier: Apache-2.0
// Shell completion of commands, flags and names of jobs, generated from the commands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lambdadnn {

// `shell` is bash, zsh or fish; `program` what the user types.
std::string CompletionScript(const CLI::App& app, const std::string& shell,
                             const std::string& program);

}  // namespace lambdadnn
