// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/host_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/base/end_signals.h"
#include "common/base/text.h"
#include "common/telemetry/log.h"
#include "operator/backends/local/host_protocol.h"

namespace lambdadnn {
namespace {

// From SIGTERM to SIGKILL: a function that has to end its iteration and write a checkpoint may take
// this long.
constexpr double kGraceSeconds = 10;
constexpr int kDefaultLogLines = 100;
constexpr std::string_view kFunctionsPath = "/v1/functions";

// Held while a host runs, so that of two hosts started at once one serves the socket and the other
// reports an error. The kernel releases it however the host ends.
class SocketLock {
 public:
  static Result<SocketLock> Take(const std::string& socket) {
    SocketLock lock;
    lock.path_ = socket + ".lock";
    while (true) {
      lock.descriptor_ = ::open(lock.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
      if (lock.descriptor_ < 0) {
        return UnavailableError("opening " + lock.path_ + ": " + std::strerror(errno));
      }
      if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
        return FailedPreconditionError("another function host serves " + socket +
                                       "; use it, or end it first");
      }
      // The last holder may have removed the file between our open and lock.
      struct stat held{};
      struct stat named{};
      if (::fstat(lock.descriptor_, &held) == 0 && ::stat(lock.path_.c_str(), &named) == 0 &&
          held.st_ino == named.st_ino) {
        return lock;
      }
      ::close(lock.descriptor_);
    }
  }
  ~SocketLock() {
    if (descriptor_ < 0) return;
    if (held_) ::unlink(path_.c_str());
    ::close(descriptor_);
  }
  SocketLock(SocketLock&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {
    held_ = true;
  }
  SocketLock(const SocketLock&) = delete;
  SocketLock& operator=(const SocketLock&) = delete;
  SocketLock& operator=(SocketLock&&) = delete;

 private:
  SocketLock() = default;
  std::string path_;
  int descriptor_ = -1;
  bool held_ = false;  // set by the move out of Take(): a lock that was not got removes nothing
};

// The folder of the socket, as /run/lambdadnn after a boot, is made for the host's user alone.
Status MakeSocketFolder(const std::string& socket) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(socket).parent_path();
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return OkStatus();
  fs::create_directories(folder, error);
  if (!error) fs::permissions(folder, fs::perms::owner_all, error);
  if (!error) return OkStatus();
  return UnavailableError("making the folder of " + socket + ": " + error.message() +
                          "; make it, or name another --socket");
}

Result<double> GraceOf(const HttpServerRequest& request) {
  const auto found = request.query.find("graceSeconds");
  if (found == request.query.end()) return kGraceSeconds;
  const std::optional<double> seconds = ParseDouble(found->second);
  constexpr double kMaxGraceSeconds = 3600;
  if (!seconds || *seconds < 0 || *seconds > kMaxGraceSeconds) {
    return InvalidArgumentError("graceSeconds must be a number from 0 to 3600");
  }
  return *seconds;
}

std::string QueryOf(const HttpServerRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string() : found->second;
}

HttpServerReply ReplyOf(const Status& status, int http_status = 200) {
  if (!status.ok()) return ErrorReply(status);
  HttpServerReply reply;
  reply.status = http_status;
  reply.body = "{}\n";
  return reply;
}

HttpServerReply NoSuchRoute(const HttpServerRequest& request) {
  return ErrorReply(
      NotFoundError("the function host does not serve " + request.method + " " + request.path));
}

}  // namespace

std::optional<HttpServerReply> HostServer::Admit(const HttpServerRequest&) { return std::nullopt; }

HttpServerReply HostServer::Handle(HttpServerRequest request) {
  if (request.path == "/v1/host") {
    if (request.method == "DELETE") {
      const Result<double> grace = GraceOf(request);
      if (!grace.ok()) return ErrorReply(grace.status());
      end_grace_seconds_ = *grace;
      return ReplyOf(OkStatus(), 202);
    }
    if (request.method != "GET") return NoSuchRoute(request);
    HttpServerReply reply;
    reply.body =
        EncodeHostInfo({::getpid(), host_.IsolationName(), host_.IsolationReason(), directory_,
                        host_.memory_mib(), static_cast<int64_t>(host_.gpus())});
    return reply;
  }
  if (request.path == kFunctionsPath) return Functions(request);
  const std::string prefix = std::string(kFunctionsPath) + "/";
  if (request.path.starts_with(prefix)) {
    return OneFunction(request, request.path.substr(prefix.size()));
  }
  return NoSuchRoute(request);
}

HttpServerReply HostServer::Functions(const HttpServerRequest& request) {
  const std::string job = QueryOf(request, "jobUid");
  if (request.method == "GET") {
    HttpServerReply reply;
    reply.body = EncodeFunctions(host_.List(job));
    return reply;
  }
  if (request.method == "POST") {
    const Result<HostedFunctionSpec> spec = DecodeFunctionSpec(request.body);
    return ReplyOf(spec.ok() ? host_.Create(*spec) : spec.status(), 201);
  }
  if (request.method == "DELETE") {
    const Result<double> grace = GraceOf(request);
    if (!grace.ok()) return ErrorReply(grace.status());
    return ReplyOf(host_.DeleteGroup(job, QueryOf(request, "group"), *grace), 202);
  }
  return NoSuchRoute(request);
}

HttpServerReply HostServer::OneFunction(const HttpServerRequest& request, std::string uid) {
  std::string part;
  if (const size_t slash = uid.find('/'); slash != std::string::npos) {
    part = uid.substr(slash + 1);
    uid.resize(slash);
  }
  if (part.empty() && request.method == "DELETE") {
    const Result<double> grace = GraceOf(request);
    return ReplyOf(grace.ok() ? host_.Delete(uid, *grace) : grace.status(), 202);
  }
  if (part == "cpu" && request.method == "PUT") {
    const std::optional<long long> milli_cpu = ParseInteger(QueryOf(request, "milliCpu"));
    constexpr long long kMaxMilliCpu = 1'000'000;
    if (!milli_cpu || *milli_cpu < 0 || *milli_cpu > kMaxMilliCpu) {
      return ErrorReply(InvalidArgumentError("milliCpu must be a whole number from 0 to 1000000"));
    }
    return ReplyOf(host_.SetCpu(uid, static_cast<int>(*milli_cpu)));
  }
  if (part == "logs" && request.method == "GET") {
    const std::string lines = QueryOf(request, "lines");
    const std::optional<long long> count =
        lines.empty() ? std::optional<long long>(kDefaultLogLines) : ParseInteger(lines);
    constexpr long long kMaxLines = 1'000'000;
    if (!count || *count < 0 || *count > kMaxLines) {
      return ErrorReply(InvalidArgumentError("lines must be a whole number from 0 to 1000000"));
    }
    Result<std::string> logs = host_.Logs(uid, static_cast<int>(*count));
    if (!logs.ok()) return ErrorReply(logs.status());
    HttpServerReply reply;
    reply.content_type = "text/plain; charset=utf-8";
    reply.body = *std::move(logs);
    return reply;
  }
  return NoSuchRoute(request);
}

Status RunHost(Runtime& runtime, const HostProgramOptions& options) {
  const sigset_t signals = BlockEndSignals();

  LDNN_RETURN_IF_ERROR(MakeSocketFolder(options.socket));
  LDNN_ASSIGN_OR_RETURN(const SocketLock lock, SocketLock::Take(options.socket));
  ::unlink(options.socket.c_str());  // of a host that was killed: its lock is ours
  LDNN_ASSIGN_OR_RETURN(const std::unique_ptr<FunctionHost> host,
                        FunctionHost::Open(runtime, options.host));
  HostServer handler(*host, options.host.directory);
  LDNN_ASSIGN_OR_RETURN(
      std::unique_ptr<HttpServer> http,
      HttpServer::ListenUnix(runtime, handler, options.socket, HttpServerLimits{}));
  LogInfo("host", "serving", {{"socket", options.socket}, {"isolation", host->IsolationName()}});

  constexpr long kPollNanoseconds = 50'000'000;
  const timespec poll{0, kPollNanoseconds};
  double grace_seconds = kGraceSeconds;
  while (!host->Ended()) {
    if (sigtimedwait(&signals, nullptr, &poll) > 0) {
      host->Stop(grace_seconds);
      grace_seconds = 0;  // a second signal does not wait
    }
    if (const std::optional<double> requested = handler.EndRequested()) host->Stop(*requested);
  }
  LogInfo("host", "ended");
  http.reset();
  ::unlink(options.socket.c_str());
  return OkStatus();
}

}  // namespace lambdadnn
