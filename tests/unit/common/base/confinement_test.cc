// SPDX-License-Identifier: Apache-2.0
#include "common/base/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace lambdadnn {
namespace {

constexpr int kNotConfined = 100;
constexpr int kAllowed = 101;
constexpr ConfinementLimits kLimits = {.more_memory_bytes = 1 << 30, .more_cpu_seconds = 20};

// What a confined child ends with: its exit code, or 128 + the signal.
int InConfinedChild(const std::function<int()>& body, const ConfinementLimits& limits = kLimits) {
  const pid_t child = fork();
  if (child == 0) _exit(ConfineThisProcess(limits).ok() ? body() : kNotConfined);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// What a call that is refused leaves.
int ErrorOf(long result) { return result < 0 ? errno : kAllowed; }

struct Refused {
  const char* what;
  std::function<long()> call;
};

TEST(Confinement, RefusesNetworkProgramsProcessesAndFilesToWrite) {
  const pid_t parent = getpid();
  const std::vector<Refused> rows = {
      {"a TCP socket", [] { return socket(AF_INET, SOCK_STREAM, 0); }},
      {"a UDP socket", [] { return socket(AF_INET6, SOCK_DGRAM, 0); }},
      {"a local socket", [] { return socket(AF_UNIX, SOCK_STREAM, 0); }},
      {"a program", [] { return execl("/bin/true", "true", nullptr); }},
      {"a process", [] { return fork(); }},
      {"a signal", [parent] { return kill(parent, 0); }},
      {"a new file", [] { return open("/tmp/ldnn-confined", O_CREAT | O_WRONLY, 0600); }},
      {"a device to write to", [] { return open("/dev/null", O_RDWR); }},
      {"a name", [] { return rename("/tmp/ldnn-a", "/tmp/ldnn-b"); }},
      {"a file's end", [] { return unlink("/tmp/ldnn-a"); }},
      {"a folder", [] { return mkdir("/tmp/ldnn-confined", 0700); }},
  };
  for (const Refused& row : rows) {
    EXPECT_EQ(InConfinedChild([&] { return ErrorOf(row.call()); }), EPERM) << row.what;
  }
}

TEST(Confinement, LeavesFilesToReadThreadsAndWhatIsOpen) {
  const auto works = [] {
    if (open("/dev/null", O_RDONLY) < 0) return 1;
    bool ran = false;
    std::thread([&ran] { ran = true; }).join();
    if (!ran) return 2;
    return write(STDOUT_FILENO, "", 0) == 0 ? 0 : 3;
  };
  EXPECT_EQ(InConfinedChild(works), 0);
}

TEST(Confinement, ThreadsThatRunAlreadyAreConfined) {
  const auto of_thread = [] {
    int ends[2] = {};
    int error = 0;
    if (pipe(ends) != 0) return 1;
    std::thread older([&] {
      char byte = 0;
      if (read(ends[0], &byte, 1) == 1) error = ErrorOf(socket(AF_INET, SOCK_STREAM, 0));
    });
    if (!ConfineThisProcess(kLimits).ok()) return kNotConfined;
    if (write(ends[1], "x", 1) != 1) return 2;
    older.join();
    return error;
  };
  const pid_t child = fork();
  if (child == 0) _exit(of_thread());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), EPERM);
}

TEST(Confinement, MemoryBeyondTheLimitIsNotThere) {
  // What malloc does: sanitizers have reserved the memory of theirs already.
  const auto allocate = [](size_t bytes) {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? errno : kAllowed;
  };
  const ConfinementLimits limits = {.more_memory_bytes = 64 << 20, .more_cpu_seconds = 20};
  EXPECT_EQ(InConfinedChild([&] { return allocate(size_t{16} << 20); }, limits), kAllowed);
  EXPECT_EQ(InConfinedChild([&] { return allocate(size_t{80} << 20); }, limits), ENOMEM);
}

TEST(Confinement, ALoopWithoutAnEndIsEndedByItsTime) {
  const auto loops = [] {
    std::atomic<int64_t> rounds = 0;
    while (rounds.fetch_add(1) >= 0) {
    }
    return 0;
  };
  EXPECT_EQ(InConfinedChild(loops, {.more_memory_bytes = 64 << 20, .more_cpu_seconds = 1}),
            128 + SIGXCPU);
}

TEST(Confinement, AnAbortEndsTheChildAsAnywhere) {
  EXPECT_EQ(InConfinedChild([]() -> int { std::abort(); }), 128 + SIGABRT);
}

}  // namespace
}  // namespace lambdadnn
