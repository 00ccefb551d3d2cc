// SPDX-License-Identifier: Apache-2.0
// The program as a user runs it in the repository.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "tests/support/paths.h"

namespace lambdadnn {

struct Ended {
  int exit_code = -1;
  std::string output;  // both streams
};

inline Ended Lambdadnn(const std::string& arguments) {
  const std::string command = "cd " + SourcePath("examples") + "/.. && " +
                              ProgramPath("lambdadnn") + " " + arguments + " 2>&1";
  Ended run;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  size_t read = 0;
  while ((read = std::fread(buffer, 1, sizeof buffer, pipe)) > 0) run.output.append(buffer, read);
  run.exit_code = WEXITSTATUS(pclose(pipe));
  return run;
}

}  // namespace lambdadnn
