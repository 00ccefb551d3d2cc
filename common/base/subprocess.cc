// SPDX-License-Identifier: Apache-2.0
#include "common/base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

// This process's environment with the changes applied, as posix_spawn wants it.
std::vector<std::string> MergedEnvironment(const SubprocessSpec& spec) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool kept = !spec.keeps_little || std::ranges::count(kKeptVariables, name) > 0;
    if (kept && !spec.environment.contains(name)) merged.push_back(text);
  }
  for (const auto& [name, value] : spec.environment) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// `input` is negative where there is none.
Result<pid_t> Spawn(const SubprocessSpec& spec, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (input < 0) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  } else {
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  }
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  std::vector<std::string> arguments = spec.arguments;
  std::vector<std::string> environment = MergedEnvironment(spec);
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

// This process's ends of the child's pipes; closed in the end.
struct Ends {
  int input = -1;  // a socket, since writing to a pipe that nobody reads is a signal
  int output = -1;
  std::string_view unsent;

  ~Ends() {
    CloseInput();
    if (output >= 0) close(output);
  }
  void CloseInput() {
    if (input >= 0) close(input);
    input = -1;
  }
  // As much of what is left as the child takes now.
  void Send() {
    const ssize_t sent = send(input, unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) unsent.remove_prefix(static_cast<size_t>(sent));
    const bool again = errno == EAGAIN || errno == EINTR;
    if (unsent.empty() || (sent < 0 && !again)) CloseInput();
  }
};

// Writes the input, and reads everything that comes out until the other end is closed.
Status Talk(const SubprocessSpec& spec, Clock& clock, Instant deadline, Ends& ends,
            std::string* output) {
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock.Now()).count();
    if (left <= 0) return TooSlow(spec);
    std::array<pollfd, 2> wanted{{{.fd = ends.output, .events = POLLIN, .revents = 0},
                                  {.fd = ends.input, .events = POLLOUT, .revents = 0}}};
    const int timeout = static_cast<int>(std::min<long long>(left, 60'000));
    if (poll(wanted.data(), wanted.size(), timeout) <= 0) continue;
    if (wanted[1].revents != 0) ends.Send();
    if (wanted[0].revents == 0) continue;
    const ssize_t got = read(ends.output, buffer.data(), buffer.size());
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

// Starts the child; what this process keeps of its pipes is in `ends`.
Result<pid_t> Start(const SubprocessSpec& spec, Ends& ends) {
  std::array<int, 2> output{};
  if (pipe2(output.data(), O_CLOEXEC) != 0) {
    return ResourceExhaustedError(std::string("making a pipe: ") + std::strerror(errno));
  }
  ends.output = output[0];
  std::array<int, 2> input{-1, -1};
  Result<pid_t> pid = 0;
  if (spec.input.empty() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input.data()) == 0) {
    ends.input = input[0];
    ends.unsent = spec.input;
    pid = Spawn(spec, input[1], output[1]);
  } else {
    pid = ResourceExhaustedError(std::string("making a socket: ") + std::strerror(errno));
  }
  if (input[1] >= 0) close(input[1]);
  close(output[1]);
  return pid;
}

}  // namespace

Result<SubprocessResult> RunSubprocess(const SubprocessSpec& spec) {
  LDNN_CHECK(!spec.arguments.empty(), "a process needs a program");
  Ends ends;
  LDNN_ASSIGN_OR_RETURN(const pid_t pid, Start(spec, ends));
  SystemClock clock;
  const Instant deadline = clock.Now() + spec.time_limit;
  SubprocessResult result;
  int status = 0;
  Status ended = Talk(spec, clock, deadline, ends, &result.output);
  if (ended.ok()) ended = WaitFor(spec, clock, deadline, pid, &status);
  if (!ended.ok()) {
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return ended;
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace lambdadnn
