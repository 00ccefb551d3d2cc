// SPDX-License-Identifier: Apache-2.0
// FunctionBackend for processes of this machine, over the socket of a function host. It keeps no
// state of its own: another LocalBackend on the same socket sees the same functions.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/runtime.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/local/host_client.h"
#include "operator/backends/local/host_protocol.h"
#include "operator/backends/local/machine.h"

namespace lambdadnn {

class LocalBackend final : public FunctionBackend {
 public:
  struct HostOptions {
    // Of the host: logs/UID.log; made when missing.
    std::string directory;
    // The `lambdadnn` executable; the functions' programs lie beside it.
    std::string program;
    // Between SIGTERM and SIGKILL when a function is deleted.
    double grace_seconds = 10;
    // false: functions pace themselves even where control groups could be made.
    bool use_cgroups = true;
  };

  // Starts a host that ends with this process, however that ends, and with this object; it is
  // started again if it dies. kUnavailable when it does not serve within ten seconds.
  static Result<std::unique_ptr<LocalBackend>> StartHost(Runtime& runtime,
                                                         const HostOptions& options);
  // Uses the host that serves `socket`; it stays when this object goes.
  static Result<std::unique_ptr<LocalBackend>> Connect(Runtime& runtime, const std::string& socket);
  // Ends a host of its own and all its functions.
  ~LocalBackend() override;
  LocalBackend(const LocalBackend&) = delete;
  LocalBackend& operator=(const LocalBackend&) = delete;

  BackendCapabilities capabilities() const override { return CapabilitiesOf(BackendKind::kLocal); }
  Status EnsureGroup(const FunctionGroup& group) override;
  Status DeleteGroup(const JobIdentity& job, const std::string& group) override;
  Status DeleteInstance(const JobIdentity& job, const std::string& uid) override;
  Result<std::vector<FunctionInstance>> List(const JobIdentity& job) override;
  Status SetCpu(const JobIdentity& job, const std::string& uid, int milli_cpu) override;
  Result<std::string> Logs(const JobIdentity& job, const std::string& uid, int last_lines) override;
  Result<FunctionCapacity> Capacity() override;
  // As the host says now, which may begin to pace at its first function; what it said last while
  // it does not answer.
  std::string IsolationName() const override;
  // Why isolation is "pacing": said to the user once. Of the last IsolationName().
  std::string IsolationReason() const;
  const std::string& socket() const { return client_.socket(); }

 private:
  LocalBackend(Runtime& runtime, std::string socket, HostOptions options, bool owns_host)
      : runtime_(runtime),
        options_(std::move(options)),
        owns_host_(owns_host),
        client_(std::move(socket)) {}

  Result<std::string> Call(const std::string& method, const std::string& target,
                           const std::string& body = {});
  Status LaunchHost();
  Status AwaitHost();
  Result<HostInfo> AskHost() const;
  // Starts the own host again when it has died; its functions died with it.
  Status ReviveHost();

  Runtime& runtime_;
  const HostOptions options_;
  const bool owns_host_;
  const HostClient client_;
  const std::string cpu_model_ = CpuModel();
  mutable std::mutex isolation_mutex_;
  mutable std::string isolation_;         // under isolation_mutex_
  mutable std::string isolation_reason_;  // likewise
  std::mutex host_mutex_;
  pid_t host_pid_ = 0;  // under host_mutex_
};

}  // namespace lambdadnn
