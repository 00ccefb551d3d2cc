// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/function_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace lambdadnn {
namespace {

// What the child tells its parent when it cannot run the program.
struct Failure {
  enum Stage : int { kCgroup, kLog, kExecute } stage;
  int error;
};

// Everything is made before fork(): between fork() and execve() of a process with threads only
// async-signal-safe calls are allowed, no allocation among them.
struct Prepared {
  std::vector<char*> arguments;
  std::vector<std::string> variables;
  std::vector<char*> environment;
};

Prepared Prepare(const ProcessSpec& spec) {
  Prepared prepared;
  for (const std::string& argument : spec.arguments) {
    prepared.arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  prepared.arguments.push_back(nullptr);
  for (const auto& [name, value] : spec.environment) {
    prepared.variables.push_back(name + "=" + value);
  }
  for (std::string& variable : prepared.variables) {
    prepared.environment.push_back(variable.data());
  }
  prepared.environment.push_back(nullptr);
  return prepared;
}

[[noreturn]] void Report(int descriptor, Failure::Stage stage) {
  const Failure failure{stage, errno};
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &failure, sizeof failure);
  ::_exit(127);
}

void ResetSignals() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGCHLD, SIGQUIT, SIGUSR1, SIGUSR2}) {
    ::signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the child. Never returns.
[[noreturn]] void Become(const ProcessSpec& spec, const Prepared& prepared, pid_t parent,
                         int report) {
  if (spec.dies_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before the line above
  }
  ::setpgid(0, 0);
  ResetSignals();
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (const std::string& file : spec.cgroup_files) {
    const int procs = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (procs < 0 || ::write(procs, "0", 1) != 1) Report(report, Failure::kCgroup);
    ::close(procs);
  }
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int log = ::open(spec.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (null < 0 || log < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(log, STDOUT_FILENO) < 0 ||
      ::dup2(log, STDERR_FILENO) < 0) {
    Report(report, Failure::kLog);
  }
  // File descriptors that a library of the host has opened without O_CLOEXEC. Old kernels lack the
  // call; the host's own descriptors are all O_CLOEXEC.
  constexpr unsigned kCloseOnExec = 1U << 2;
  ::syscall(SYS_close_range, 3U, ~0U, kCloseOnExec);
  ::execve(prepared.arguments[0], prepared.arguments.data(), prepared.environment.data());
  Report(report, Failure::kExecute);
}

Status StatusOf(const Failure& failure, const ProcessSpec& spec) {
  const std::string reason = std::strerror(failure.error);
  switch (failure.stage) {
    case Failure::kCgroup:
      return PermissionDeniedError("cannot join control group of " + spec.log_file + ": " + reason);
    case Failure::kLog:
      return UnavailableError("cannot write log " + spec.log_file + ": " + reason);
    case Failure::kExecute:
      break;
  }
  return FailedPreconditionError("cannot run " + spec.arguments[0] + ": " + reason);
}

}  // namespace

Result<pid_t> StartProcess(const ProcessSpec& spec) {
  LDNN_CHECK(!spec.arguments.empty(), "a process needs a program");
  const Prepared prepared = Prepare(spec);
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0) {
    return ResourceExhaustedError(std::string("making a pipe: ") + std::strerror(errno));
  }
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) Become(spec, prepared, parent, report[1]);
  const int fork_error = errno;
  ::close(report[1]);
  if (child < 0) {
    ::close(report[0]);
    return ResourceExhaustedError(std::string("starting a process: ") + std::strerror(fork_error));
  }
  // Ends without a byte when execve() has closed the child's end.
  Failure failure{};
  ssize_t got = 0;
  do {
    got = ::read(report[0], &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  ::close(report[0]);
  if (got != static_cast<ssize_t>(sizeof failure)) return child;
  ::waitpid(child, nullptr, 0);
  return StatusOf(failure, spec);
}

std::string DescribeExit(int wait_status) {
  if (WIFEXITED(wait_status)) return "Exited " + std::to_string(WEXITSTATUS(wait_status));
  if (!WIFSIGNALED(wait_status)) return "Unknown";
  const int number = WTERMSIG(wait_status);
  return number == SIGKILL ? "Killed" : "Signal " + std::to_string(number);
}

bool EndedByItself(int wait_status) {
  if (WIFEXITED(wait_status)) return true;
  if (!WIFSIGNALED(wait_status)) return false;
  const int number = WTERMSIG(wait_status);
  return number != SIGKILL && number != SIGTERM;
}

}  // namespace lambdadnn
