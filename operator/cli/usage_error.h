// SPDX-License-Identifier: Apache-2.0
// One sentence for a command line that cannot be parsed, naming what was meant where that is
// likely: `unknown command "rnu"; did you mean "run"?`.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

namespace lambdadnn {

// `words` are the arguments after the program's name.
std::string DescribeUsageError(const CLI::App& app, const CLI::ParseError& error,
                               std::span<const std::string> words);

}  // namespace lambdadnn
