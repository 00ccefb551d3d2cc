// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/local_backend.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "common/base/bytes.h"
#include "common/base/percent_encoding.h"
#include "common/base/random.h"
#include "operator/backends/local/function_files.h"
#include "operator/backends/local/function_process.h"
#include "operator/backends/local/host_protocol.h"

namespace lambdadnn {
namespace {

namespace fs = std::filesystem;

constexpr double kHostStartSeconds = 10;
constexpr Duration kHostPoll = std::chrono::milliseconds(5);
// sun_path holds 107 bytes; ".lock" is appended to the socket's name.
constexpr size_t kMaxSocketBytes = 100;

// In the directory, or, where that path is too long for a socket, in the temporary folder.
std::string SocketIn(const std::string& directory, Random& random) {
  std::string socket = directory + "/host.sock";
  if (socket.size() <= kMaxSocketBytes) return socket;
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  return (error ? fs::path("/tmp") : folder) / ("lambdadnn-" + Hex64(random.Next()) + ".sock");
}

}  // namespace

Result<std::unique_ptr<LocalBackend>> LocalBackend::StartHost(Runtime& runtime,
                                                              const HostOptions& options) {
  HostOptions absolute = options;
  std::error_code error;
  absolute.directory = fs::absolute(options.directory, error).string();
  if (!error) fs::create_directories(absolute.directory, error);
  if (error) {
    return UnavailableError("making " + options.directory + ": " + error.message());
  }
  std::unique_ptr<LocalBackend> backend(
      new LocalBackend(runtime, SocketIn(absolute.directory, runtime.random), absolute, true));
  {
    std::lock_guard lock(backend->host_mutex_);
    LDNN_RETURN_IF_ERROR(backend->LaunchHost());
  }
  LDNN_RETURN_IF_ERROR(backend->AwaitHost());
  return backend;
}

Result<std::unique_ptr<LocalBackend>> LocalBackend::Connect(Runtime& runtime,
                                                            const std::string& socket) {
  std::unique_ptr<LocalBackend> backend(new LocalBackend(runtime, socket, HostOptions{}, false));
  LDNN_RETURN_IF_ERROR(backend->AskHost().status());
  return backend;
}

LocalBackend::~LocalBackend() {
  std::lock_guard lock(host_mutex_);
  if (!owns_host_ || host_pid_ == 0) return;
  // Callers that want functions to end in order delete their groups before.
  if (!client_.Call("DELETE", "/v1/host?graceSeconds=1").ok()) ::kill(host_pid_, SIGTERM);
  ::waitpid(host_pid_, nullptr, 0);
}

Status LocalBackend::LaunchHost() {
  ProcessSpec process;
  process.arguments = {options_.program, "host",
                       "--socket",       client_.socket(),
                       "--dir",          options_.directory,
                       "--with-parent",  std::to_string(::getpid())};
  if (!options_.use_cgroups) process.arguments.push_back("--no-cgroups");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos)
      process.environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  process.log_file = options_.directory + "/host.log";
  process.dies_with_parent = false;  // it watches its parent itself, and then cleans up
  LDNN_ASSIGN_OR_RETURN(host_pid_, StartProcess(process));
  return OkStatus();
}

Status LocalBackend::AwaitHost() {
  const Instant deadline = runtime_.clock.Now() + FromSeconds(kHostStartSeconds);
  while (true) {
    const Status answered = AskHost().status();
    if (answered.ok() || answered.code() == StatusCode::kInvalidArgument) return answered;
    std::lock_guard lock(host_mutex_);
    if (::waitpid(host_pid_, nullptr, WNOHANG) == host_pid_) {
      host_pid_ = 0;
      return UnavailableError("the function host ended at once: " +
                              LastLine(options_.directory + "/host.log"));
    }
    if (runtime_.clock.Now() >= deadline) return answered;
    runtime_.clock.SleepFor(kHostPoll);
  }
}

Result<HostInfo> LocalBackend::AskHost() const {
  LDNN_ASSIGN_OR_RETURN(const std::string text, client_.Call("GET", "/v1/host"));
  LDNN_ASSIGN_OR_RETURN(HostInfo info, DecodeHostInfo(text));
  const std::lock_guard lock(isolation_mutex_);
  isolation_ = info.isolation;
  isolation_reason_ = info.isolation_reason;
  return info;
}

std::string LocalBackend::IsolationName() const {
  (void)AskHost();
  const std::lock_guard lock(isolation_mutex_);
  return isolation_;
}

std::string LocalBackend::IsolationReason() const {
  const std::lock_guard lock(isolation_mutex_);
  return isolation_reason_;
}

Status LocalBackend::ReviveHost() {
  if (!owns_host_) return OkStatus();
  {
    std::lock_guard lock(host_mutex_);
    if (host_pid_ != 0 && ::waitpid(host_pid_, nullptr, WNOHANG) == 0) return OkStatus();
    LDNN_RETURN_IF_ERROR(LaunchHost());
  }
  return AwaitHost();
}

Result<std::string> LocalBackend::Call(const std::string& method, const std::string& target,
                                       const std::string& body) {
  Result<std::string> answer = client_.Call(method, target, body);
  if (answer.ok() || answer.status().code() != StatusCode::kUnavailable) return answer;
  // Every request may be sent twice.
  LDNN_RETURN_IF_ERROR(ReviveHost());
  return client_.Call(method, target, body);
}

Status LocalBackend::EnsureGroup(const FunctionGroup& group) {
  if (group.count == 0) return DeleteGroup(JobOf(group), group.name);
  LDNN_ASSIGN_OR_RETURN(const std::vector<FunctionInstance> functions, List(JobOf(group)));
  std::vector<std::string> living;
  for (const FunctionInstance& function : functions) {
    const bool lives =
        function.phase == FunctionPhase::kPending || function.phase == FunctionPhase::kReady;
    if (function.group == group.name && lives) living.push_back(function.uid);
  }
  const auto count = static_cast<size_t>(group.count);
  for (size_t i = living.size(); i < count; ++i) {
    HostedFunctionSpec spec;
    spec.uid = group.name + "-" + Hex64(runtime_.random.Next()).substr(0, 10);
    spec.group = group;
    LDNN_RETURN_IF_ERROR(Call("POST", "/v1/functions", EncodeFunctionSpec(spec)).status());
  }
  for (size_t i = count; i < living.size(); ++i) {
    LDNN_RETURN_IF_ERROR(DeleteInstance(JobOf(group), living[i]));
  }
  return OkStatus();
}

Status LocalBackend::DeleteGroup(const JobIdentity& job, const std::string& group) {
  return Call("DELETE", "/v1/functions?jobUid=" + PercentEncode(job.uid) +
                            "&group=" + PercentEncode(group) +
                            "&graceSeconds=" + std::to_string(options_.grace_seconds))
      .status();
}

Status LocalBackend::DeleteInstance(const JobIdentity&, const std::string& uid) {
  return Call("DELETE", "/v1/functions/" + PercentEncode(uid) +
                            "?graceSeconds=" + std::to_string(options_.grace_seconds))
      .status();
}

Result<std::vector<FunctionInstance>> LocalBackend::List(const JobIdentity& job) {
  LDNN_ASSIGN_OR_RETURN(const std::string text,
                        Call("GET", "/v1/functions?jobUid=" + PercentEncode(job.uid)));
  LDNN_ASSIGN_OR_RETURN(std::vector<FunctionInstance> functions, DecodeFunctions(text));
  for (FunctionInstance& function : functions) function.host.node_kind = cpu_model_;
  return functions;
}

Status LocalBackend::SetCpu(const JobIdentity&, const std::string& uid, int milli_cpu) {
  return Call("PUT",
              "/v1/functions/" + PercentEncode(uid) + "/cpu?milliCpu=" + std::to_string(milli_cpu))
      .status();
}

Result<FunctionCapacity> LocalBackend::Capacity() {
  LDNN_ASSIGN_OR_RETURN(const std::string text, Call("GET", "/v1/host"));
  LDNN_ASSIGN_OR_RETURN(const HostInfo info, DecodeHostInfo(text));
  return FunctionCapacity{.memory_mib = info.memory_mib, .gpus = info.gpus};
}

Result<std::string> LocalBackend::Logs(const JobIdentity&, const std::string& uid, int last_lines) {
  return Call("GET",
              "/v1/functions/" + PercentEncode(uid) + "/logs?lines=" + std::to_string(last_lines));
}

}  // namespace lambdadnn
