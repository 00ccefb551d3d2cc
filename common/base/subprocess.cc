// SPDX-License-Identifier: Apache-2.0
#include "common/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

// This process's environment with the changes applied, as posix_spawn wants it.
std::vector<std::string> MergedEnvironment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) merged.push_back(text);
  }
  for (const auto& [name, value] : changes) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> Spawn(const SubprocessSpec& spec, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  std::vector<std::string> arguments = spec.arguments;
  std::vector<std::string> environment = MergedEnvironment(spec.environment);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0].c_str(), &actions, nullptr,
                                 Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  const std::string what = "cannot run " + spec.arguments[0] + ": " + std::strerror(error);
  return error == EAGAIN || error == ENOMEM ? ResourceExhaustedError(what) : NotFoundError(what);
}

Status TooSlow(const SubprocessSpec& spec) {
  return DeadlineExceededError(spec.arguments[0] + " did not end within " +
                               FormatDouble(ToSeconds(spec.time_limit)) + " s");
}

// Everything that comes out of `fd` until its other end is closed.
Status ReadAll(const SubprocessSpec& spec, Clock& clock, Instant deadline, int fd,
               std::string* output) {
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock.Now()).count();
    if (left <= 0) return TooSlow(spec);
    pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&wanted, 1, static_cast<int>(std::min<long long>(left, 60'000))) <= 0) continue;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got == 0) return OkStatus();
    if (got < 0) continue;
    output->append(buffer.data(), static_cast<size_t>(got));
    if (output->size() > spec.max_output_bytes) {
      return ResourceExhaustedError(spec.arguments[0] + " printed more than " +
                                    std::to_string(spec.max_output_bytes) + " bytes");
    }
  }
}

// A program may close its output long before it ends.
Status WaitFor(const SubprocessSpec& spec, Clock& clock, Instant deadline, pid_t pid, int* status) {
  constexpr Duration kPoll = std::chrono::milliseconds(2);
  while (waitpid(pid, status, WNOHANG) == 0) {
    if (clock.Now() >= deadline) return TooSlow(spec);
    clock.SleepFor(kPoll);
  }
  return OkStatus();
}

}  // namespace

Result<SubprocessResult> RunSubprocess(const SubprocessSpec& spec) {
  LDNN_CHECK(!spec.arguments.empty(), "a process needs a program");
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return ResourceExhaustedError(std::string("making a pipe: ") + std::strerror(errno));
  }
  const Result<pid_t> pid = Spawn(spec, ends[1]);
  close(ends[1]);
  if (!pid.ok()) {
    close(ends[0]);
    return pid.status();
  }
  SystemClock clock;
  const Instant deadline = clock.Now() + spec.time_limit;
  SubprocessResult result;
  int status = 0;
  Status ended = ReadAll(spec, clock, deadline, ends[0], &result.output);
  close(ends[0]);
  if (ended.ok()) ended = WaitFor(spec, clock, deadline, *pid, &status);
  if (!ended.ok()) {
    kill(*pid, SIGKILL);
    waitpid(*pid, &status, 0);
    return ended;
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace lambdadnn
