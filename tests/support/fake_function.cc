// SPDX-License-Identifier: Apache-2.0
// A function for tests of the function host: keeps the environment contract (port file, /readyz,
// SIGTERM), and misbehaves as the FAKE_* variables say.
//
//   FAKE_EXIT=N         logs a line and exits with N before it is ready
//   FAKE_ALLOCATE_MIB=N touches N MiB once it is ready
//   FAKE_IGNORE_TERM=1  ignores SIGTERM
//   FAKE_BURN=1         uses all the CPU it gets
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "common/base/files.h"
#include "common/http/http_server.h"

namespace {

int Number(const char* name) {
  return std::atoi(lambdadnn::GetEnvironment(name).value_or("0").c_str());
}

class Probes final : public lambdadnn::HttpServerHandler {
 public:
  std::optional<lambdadnn::HttpServerReply> Admit(const lambdadnn::HttpServerRequest&) override {
    return std::nullopt;
  }
  lambdadnn::HttpServerReply Handle(lambdadnn::HttpServerRequest request) override {
    lambdadnn::HttpServerReply reply;
    reply.body = lambdadnn::GetEnvironment(request.path.substr(1)).value_or("ok");
    return reply;
  }
};

void Burn() {
  std::thread([] {
    for (std::atomic<unsigned> turns{0};; ++turns) {
    }
  }).detach();
}

}  // namespace

int main() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::fprintf(stderr, "fake function, pid %d\n", static_cast<int>(::getpid()));
  if (const int code = Number("FAKE_EXIT"); code != 0) {
    std::fprintf(stderr, "giving up with %d\n", code);
    return code;
  }
  lambdadnn::SystemClock clock;
  lambdadnn::ThreadExecutor executor;
  lambdadnn::SystemRandom random;
  lambdadnn::Runtime runtime{clock, executor, random};
  Probes probes;
  auto server = lambdadnn::HttpServer::ListenTcp(runtime, probes, "127.0.0.1", 0, {});
  if (!server.ok()) return 4;
  const std::string port_file = lambdadnn::GetEnvironment("LAMBDADNN_PORT_FILE").value_or("");
  if (!lambdadnn::WriteFileAtomically(port_file, std::to_string((*server)->port())).ok()) return 4;
  if (Number("FAKE_BURN") != 0) Burn();
  if (const int mib = Number("FAKE_ALLOCATE_MIB"); mib != 0) {
    std::fprintf(stderr, "allocating %d MiB\n", mib);
    for (int i = 0; i < mib; ++i) {
      constexpr size_t kMib = 1024 * 1024;
      // Leaked, so that it stays resident.
      std::memset(new char[kMib], i + 1, kMib);
      clock.SleepFor(std::chrono::milliseconds(1));
    }
  }
  int number = 0;
  do {
    sigwait(&signals, &number);
  } while (Number("FAKE_IGNORE_TERM") != 0);
  return 0;
}
