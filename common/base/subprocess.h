// SPDX-License-Identifier: Apache-2.0
// Another program, run to its end for what it prints. Never a shell: arguments arrive as they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace lambdadnn {

struct SubprocessSpec {
  std::vector<std::string> arguments;  // the program first; without '/' it is looked up in $PATH
  // Set beside (over) this process's environment.
  std::map<std::string, std::string> environment = {};
  Duration time_limit = std::chrono::seconds(60);
  size_t max_output_bytes = size_t{1} << 20;
};

struct SubprocessResult {
  int exit_code = 0;  // 128 + the signal's number when a signal ended it
  std::string output;
};

// Blocks. Standard input is empty, standard error this process's. kNotFound: no such program;
// kDeadlineExceeded: killed after time_limit; kResourceExhausted: it printed too much (killed), or
// no process could be made.
Result<SubprocessResult> RunSubprocess(const SubprocessSpec& spec);

}  // namespace lambdadnn
