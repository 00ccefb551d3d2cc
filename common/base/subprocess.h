// SPDX-License-Identifier: Apache-2.0
// Another program, run to its end for what it prints. Never a shell: arguments arrive as they are.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace lambdadnn {

struct SubprocessSpec {
  std::vector<std::string> arguments;  // the program first; without '/' it is looked up in $PATH
  // Set beside (over) this process's environment.
  std::map<std::string, std::string> environment = {};
  // Of this process's own environment the child has these alone; false = all of it.
  bool keeps_little = false;
  // Its standard input, outlived by the caller; a program may end without reading it all.
  std::string_view input = {};
  Duration time_limit = std::chrono::seconds(60);
  size_t max_output_bytes = size_t{1} << 20;
};

struct SubprocessResult {
  int exit_code = 0;  // 128 + the signal's number when a signal ended it
  std::string output;
};

// What a child with `keeps_little` needs to start as its parent did: where programs and libraries
// are. No credentials, and nothing that a user of pods has put there.
inline constexpr std::string_view kKeptVariables[] = {"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD",
                                                      "TMPDIR"};

// Blocks. Standard error is this process's. kNotFound: no such program;
// kDeadlineExceeded: killed after time_limit; kResourceExhausted: it printed too much (killed), or
// no process could be made.
Result<SubprocessResult> RunSubprocess(const SubprocessSpec& spec);

}  // namespace lambdadnn
