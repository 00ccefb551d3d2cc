// SPDX-License-Identifier: Apache-2.0
// Starts programs as processes, and ends those that a test leaves behind.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/runtime.h"
#include "common/base/subprocess.h"
#include "tests/support/paths.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {

class FunctionProcessTest : public testing::Test {
 protected:
  ~FunctionProcessTest() override {
    for (const pid_t pid : started_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  static std::map<std::string, std::string> Environment() {
    std::map<std::string, std::string> variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      variables[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
    }
    return variables;
  }

  pid_t Start(std::vector<std::string> arguments,
              const std::map<std::string, std::string>& variables = {}) {
    ProcessSpec spec;
    spec.arguments = std::move(arguments);
    spec.environment = Environment();
    for (const auto& [name, value] : variables) spec.environment[name] = value;
    spec.log_file = directory_ + "/log";
    const Result<pid_t> pid = StartProcess(spec);
    EXPECT_TRUE(pid.ok()) << pid.status().ToString();
    if (!pid.ok()) return 0;
    started_.push_back(*pid);
    return *pid;
  }

  // The exit code, or -signal; the process is reaped.
  int Wait(pid_t pid) {
    for (int i = 0; i < 1500; ++i) {
      int status = 0;
      if (::waitpid(pid, &status, WNOHANG) == pid) {
        std::erase(started_, pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      }
      runtime_.clock.SleepFor(FromSeconds(0.01));
    }
    ADD_FAILURE() << "process " << pid << " does not end";
    return -1000;
  }

  template <typename Condition>
  bool Eventually(Condition condition, double seconds = 15) {
    const Instant deadline = runtime_.clock.Now() + FromSeconds(seconds);
    while (!condition()) {
      if (runtime_.clock.Now() > deadline) return false;
      runtime_.clock.SleepFor(FromSeconds(0.005));
    }
    return true;
  }

  static bool IsAlive(pid_t pid) {
    // A zombie whose parent does not wait has ended all the same.
    const Result<std::string> stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
    return stat.ok() && stat->substr(stat->rfind(')') + 2, 1) != "Z";
  }

  std::string Log() { return ReadFile(directory_ + "/log").value(); }

  SystemRuntime runtime_;
  const std::string directory_ = MakeTempDir();
  std::vector<pid_t> started_;
};

}  // namespace lambdadnn
