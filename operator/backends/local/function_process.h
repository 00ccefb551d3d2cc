// SPDX-License-Identifier: Apache-2.0
// Starting one function as a child process that cannot outlive its host.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace lambdadnn {

struct ProcessSpec {
  std::vector<std::string> arguments;              // the program's path first
  std::map<std::string, std::string> environment;  // the whole of it
  std::string log_file;                            // standard output and error are appended to it
  std::vector<std::string> cgroup_files;           // Cgroup::ProcessFiles()
  // Kills the process when the *thread* that starts it ends: start from one that lives as long as
  // the host. False: the process outlives its starter (the host itself).
  bool dies_with_parent = true;
};

// A process in a group of its own, with standard input from /dev/null, no inherited descriptors,
// no blocked signals and no core files. Returns once the program runs. kFailedPrecondition when the
// program cannot be executed, kPermissionDenied when a cgroup file refuses it.
Result<pid_t> StartProcess(const ProcessSpec& spec);

// How a process ended, from waitpid's status: "Exited 2", "Killed", "Signal 11".
std::string DescribeExit(int wait_status);
// Whether the program itself caused the end: it exited, or crashed (SIGSEGV, SIGABRT and similar).
// SIGKILL and SIGTERM come from outside.
bool EndedByItself(int wait_status);

}  // namespace lambdadnn
