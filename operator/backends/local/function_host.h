// SPDX-License-Identifier: Apache-2.0
// Owns the function processes of this machine: starts, watches, limits and ends them. One task of
// the executor (the supervisor) is the parent of all of them, so that none outlives the host, even
// when it is killed. Functions are never restarted: a caller creates another one.
//
// A function starts without a CPU quota (start-up boost) and gets it when it is ready: loading
// libraries with a fraction of a core would take many times as long.
//
// Thread-safe; no call waits for a process. Memory and CPU limits are kept by control groups where
// these can be made (cgroups.h); else the host kills what grows beyond its memory, and functions
// pace themselves by their CPU clock (LAMBDADNN_MILLI_CPU, LAMBDADNN_MILLI_CPU_FILE).
#pragma once

#include <sys/types.h>

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/base/status.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/local/cgroups.h"

namespace lambdadnn {

// One function to start: an instance of a group. `group.count` does not matter.
struct HostedFunctionSpec {
  std::string uid;  // letters, digits, '-', '_', '.'; never used before
  FunctionGroup group;
};

class FunctionHost {
 public:
  struct Options {
    std::string directory;          // logs/UID.log and working files
    std::string program_directory;  // of lambdadnn-worker and lambdadnn-server
    // When this process is no longer the parent, all functions are killed and Ended() holds.
    std::optional<pid_t> parent;
    bool use_cgroups = true;
    // Most memory of all functions together; 0 = no limit.
    int64_t memory_mib = 0;
    // Of this machine, as CUDA_VISIBLE_DEVICES names them: each is one function's at a time.
    std::vector<std::string> gpus = {};
  };

  // Of a program in the directory of programs.
  static std::string ProgramPath(const std::string& directory, FunctionProgram program);
  // kFailedPrecondition with what to do where this program is not there.
  static Status CheckProgram(const std::string& directory, FunctionProgram program);

  // kUnavailable when the directory cannot be written.
  static Result<std::unique_ptr<FunctionHost>> Open(Runtime& runtime, const Options& options);
  // Kills what is left.
  ~FunctionHost();
  FunctionHost(const FunctionHost&) = delete;
  FunctionHost& operator=(const FunctionHost&) = delete;

  // The same uid again does nothing while that function is known; kAlreadyExists afterwards.
  // kResourceExhausted: there is no capacity for it beside the others, until some of them are gone.
  // kUnimplemented: it wants more GPUs than the host has.
  Status Create(const HostedFunctionSpec& spec);
  // Ended functions stay in the list, with their reason, until they or their group are deleted.
  std::vector<FunctionInstance> List(const std::string& job_uid) const;
  // SIGTERM, and SIGKILL after `grace_seconds`. OK as well for one that is not there.
  Status Delete(const std::string& uid, double grace_seconds);
  Status DeleteGroup(const std::string& job_uid, const std::string& group, double grace_seconds);
  Status SetCpu(const std::string& uid, int milli_cpu);
  // kNotFound when the function never was.
  Result<std::string> Logs(const std::string& uid, int last_lines) const;
  // "cgroup v1", "cgroup v2", "pacing".
  std::string IsolationName() const;
  // Options::memory_mib.
  int64_t memory_mib() const { return options_.memory_mib; }
  size_t gpus() const { return options_.gpus.size(); }
  // Why it is "pacing"; empty otherwise.
  std::string IsolationReason() const;

  // Ends all functions and starts no more.
  void Stop(double grace_seconds);
  // All functions are gone after Stop(), or because the parent has gone.
  bool Ended() const;

 private:
  enum class Stage { kQueued, kStarting, kReady, kTerminating, kGone };
  struct Function {
    HostedFunctionSpec spec;
    Stage stage = Stage::kQueued;
    pid_t pid = 0;
    int port = 0;
    int peer_port = 0;              // 0 = none
    std::vector<std::string> gpus;  // its own until it is gone
    Instant created{};
    std::optional<Instant> ended;
    double cold_start_seconds = 0;
    Instant kill_at{};  // kTerminating
    bool deleted = false;
    bool over_memory = false;
    std::string reason;
    FunctionEnd end = FunctionEnd::kNone;
    std::unique_ptr<Cgroup> cgroup;
  };

  FunctionHost(Runtime& runtime, const Options& options);
  void OpenCgroups();
  // Of the supervisor; all under the monitor.
  void Supervise();
  void Step(Function& function);
  void Launch(Function& function);
  Result<pid_t> LaunchProcess(Function& function);
  void LookForPort(Function& function);
  void CheckMemory(Function& function);
  void Reap(Function& function);
  void LeaveCgroup(Function& function);
  void RemoveLeftGroups();
  void Terminate(Function& function, double grace_seconds);
  void KillAll();

  bool IsPacing() const { return cgroups_ == nullptr; }
  Function* Find(const std::string& uid);
  Status CheckCapacity(const FunctionGroup& group) const;
  // As many as the group's functions have; fewer where they are taken.
  std::vector<std::string> FreeGpus(const FunctionGroup& group) const;
  std::string FileOf(const std::string& uid, const char* extension) const;
  std::string LogFile(const std::string& uid) const;
  FunctionInstance View(const Function& function) const;

  Runtime& runtime_;
  const Options options_;
  std::unique_ptr<Monitor> monitor_;
  std::unique_ptr<CgroupTree> cgroups_;
  // Of functions that are gone, until the last of the processes that these made is gone as well.
  struct LeftGroup {
    std::unique_ptr<Cgroup> group;
    Instant since;
  };
  std::vector<LeftGroup> leaving_;
  std::string isolation_reason_;
  std::list<Function> functions_;
  std::set<std::string> used_uids_;
  bool stopping_ = false;
  bool ended_ = false;
  std::unique_ptr<Task> supervisor_;
};

}  // namespace lambdadnn
