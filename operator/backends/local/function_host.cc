// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/function_host.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/random.h"
#include "common/base/text.h"
#include "common/telemetry/log.h"
#include "operator/backends/local/function_files.h"
#include "operator/backends/local/function_process.h"
#include "operator/backends/local/machine.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

namespace fs = std::filesystem;

// Starting and ending functions are polled often, so that a cold start is measured to a few
// milliseconds; otherwise the host should cost nothing.
constexpr Duration kBusyTick = std::chrono::milliseconds(5);
// A process that a function made may outlive it by a moment, and keeps its group.
constexpr Duration kLeavingTime = std::chrono::seconds(5);
constexpr Duration kIdleTick = std::chrono::milliseconds(50);
constexpr size_t kMaxUidBytes = 100;
// Ended functions that are remembered at most.
constexpr size_t kMaxGone = 256;

bool IsUid(const std::string& uid) {
  return !uid.empty() && uid.size() <= kMaxUidBytes && uid.front() != '.' &&
         std::all_of(uid.begin(), uid.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

std::map<std::string, std::string> OwnEnvironment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
  }
  return variables;
}

}  // namespace

std::string FunctionHost::ProgramPath(const std::string& directory, FunctionProgram program) {
  return directory + "/lambdadnn-" + ProgramName(program);
}

Status FunctionHost::CheckProgram(const std::string& directory, FunctionProgram program) {
  const std::string path = ProgramPath(directory, program);
  if (::access(path.c_str(), X_OK) == 0) return OkStatus();
  return FailedPreconditionError(
      path + " is not there; build it" +
      (program == FunctionProgram::kWorker ? " with -DLAMBDADNN_WITH_TORCH=ON" : "") +
      " or install it beside lambdadnn");
}

Result<std::unique_ptr<FunctionHost>> FunctionHost::Open(Runtime& runtime, const Options& options) {
  for (const char* folder : {"/logs", "/functions"}) {
    std::error_code error;
    fs::create_directories(options.directory + folder, error);
    if (error) {
      return UnavailableError("making " + options.directory + folder + ": " + error.message() +
                              "; choose another directory");
    }
  }
  std::unique_ptr<FunctionHost> host(new FunctionHost(runtime, options));
  host->OpenCgroups();
  host->supervisor_ =
      runtime.executor.Spawn("supervisor", [host = host.get()] { host->Supervise(); });
  return host;
}

FunctionHost::FunctionHost(Runtime& runtime, const Options& options)
    : runtime_(runtime), options_(options), monitor_(runtime.executor.NewMonitor()) {}

FunctionHost::~FunctionHost() {
  Stop(0);
  supervisor_->Join();
}

void FunctionHost::OpenCgroups() {
  if (!options_.use_cgroups) {
    isolation_reason_ = "control groups are switched off";
    return;
  }
  const std::string name =
      std::to_string(::getpid()) + "-" + Hex64(runtime_.random.Next()).substr(0, 8);
  Result<std::unique_ptr<CgroupTree>> tree = CgroupTree::Open(name);
  if (tree.ok()) {
    cgroups_ = *std::move(tree);
  } else {
    isolation_reason_ = tree.status().message();
    LogWarning("host", "functions pace themselves by their CPU clock",
               {{"because", isolation_reason_}});
  }
}

Status FunctionHost::Create(const HostedFunctionSpec& spec) {
  if (!IsUid(spec.uid)) {
    return InvalidArgumentError("function uid '" + spec.uid +
                                "' must be 1 to 100 letters, digits, '-', '_' or '.'");
  }
  if (spec.group.memory_mib < 0 || spec.group.milli_cpu < 0 || spec.group.gpu < 0) {
    return InvalidArgumentError("function memory, CPU and GPUs must not be negative");
  }
  LDNN_RETURN_IF_ERROR(CheckProgram(options_.program_directory, spec.group.program));
  MonitorLock lock(*monitor_);
  if (Find(spec.uid) != nullptr) return OkStatus();
  if (stopping_) return UnavailableError("the function host is ending");
  if (used_uids_.contains(spec.uid)) {
    return AlreadyExistsError("function " + spec.uid + " was there and has gone; use a new uid");
  }
  LDNN_RETURN_IF_ERROR(CheckCapacity(spec.group));
  std::vector<std::string> gpus = FreeGpus(spec.group);
  used_uids_.insert(spec.uid);
  Function& function = functions_.emplace_back();
  function.spec = spec;
  function.gpus = std::move(gpus);
  function.created = runtime_.clock.Now();
  monitor_->NotifyAll();
  return OkStatus();
}

std::vector<std::string> FunctionHost::FreeGpus(const FunctionGroup& group) const {
  std::vector<std::string> free;
  for (const std::string& gpu : options_.gpus) {
    if (std::ssize(free) >= group.gpu) break;
    const bool taken = std::ranges::any_of(functions_, [&](const Function& function) {
      return function.stage != Stage::kGone && std::ranges::count(function.gpus, gpu) > 0;
    });
    if (!taken) free.push_back(gpu);
  }
  return free;
}

Status FunctionHost::CheckCapacity(const FunctionGroup& group) const {
  const std::string all = CountOf(std::ssize(options_.gpus), "GPU");
  if (group.gpu > std::ssize(options_.gpus)) {
    return UnimplementedError("a function wants a GPU, and its host has " + all +
                              "; leave out spec.functions.gpu, or run on a machine with one");
  }
  if (std::ssize(FreeGpus(group)) < group.gpu) {
    return ResourceExhaustedError("no GPU is free for a function: the host's " + all +
                                  (gpus() == 1 ? " is" : " are") +
                                  " taken; it is tried again when others have ended");
  }
  if (options_.memory_mib == 0) return OkStatus();
  int64_t taken = 0;
  for (const Function& function : functions_) {
    if (function.stage != Stage::kGone) taken += function.spec.group.memory_mib;
  }
  if (taken + group.memory_mib <= options_.memory_mib) return OkStatus();
  return ResourceExhaustedError(
      "no capacity for a function of " + std::to_string(group.memory_mib) +
      " MiB: " + std::to_string(taken) + " of the host's " + std::to_string(options_.memory_mib) +
      " MiB are taken; it is tried again when others have ended");
}

std::vector<FunctionInstance> FunctionHost::List(const std::string& job_uid) const {
  MonitorLock lock(*monitor_);
  std::vector<FunctionInstance> views;
  for (const Function& function : functions_) {
    if (function.spec.group.job_uid == job_uid) views.push_back(View(function));
  }
  return views;
}

Status FunctionHost::Delete(const std::string& uid, double grace_seconds) {
  MonitorLock lock(*monitor_);
  if (Function* function = Find(uid)) Terminate(*function, grace_seconds);
  monitor_->NotifyAll();
  return OkStatus();
}

Status FunctionHost::DeleteGroup(const std::string& job_uid, const std::string& group,
                                 double grace_seconds) {
  MonitorLock lock(*monitor_);
  for (Function& function : functions_) {
    if (function.spec.group.job_uid != job_uid || function.spec.group.name != group) continue;
    Terminate(function, grace_seconds);
  }
  monitor_->NotifyAll();
  return OkStatus();
}

Status FunctionHost::SetCpu(const std::string& uid, int milli_cpu) {
  if (milli_cpu < 0) return InvalidArgumentError("milliCpu must not be negative");
  MonitorLock lock(*monitor_);
  Function* function = Find(uid);
  if (function == nullptr || function->stage == Stage::kGone) {
    return NotFoundError("there is no running function " + uid);
  }
  function->spec.group.milli_cpu = milli_cpu;
  if (function->stage == Stage::kQueued || function->stage == Stage::kStarting) {
    if (!IsPacing()) return OkStatus();  // it gets its quota when it is ready
  } else if (function->cgroup != nullptr) {
    return function->cgroup->SetMilliCpu(milli_cpu);
  }
  return WriteFileAtomically(FileOf(uid, ".cpu"), std::to_string(milli_cpu) + "\n");
}

Result<std::string> FunctionHost::Logs(const std::string& uid, int last_lines) const {
  if (!IsUid(uid)) return NotFoundError("there is no function '" + uid + "'");
  return ReadLastLines(LogFile(uid), last_lines);
}

std::string FunctionHost::IsolationName() const {
  MonitorLock lock(*monitor_);
  return IsPacing() ? "pacing" : "cgroup v" + std::to_string(cgroups_->version());
}

std::string FunctionHost::IsolationReason() const {
  MonitorLock lock(*monitor_);
  return isolation_reason_;
}

void FunctionHost::Stop(double grace_seconds) {
  MonitorLock lock(*monitor_);
  stopping_ = true;
  for (Function& function : functions_) Terminate(function, grace_seconds);
  monitor_->NotifyAll();
}

bool FunctionHost::Ended() const {
  MonitorLock lock(*monitor_);
  return ended_;
}

void FunctionHost::Supervise() {
  MonitorLock lock(*monitor_);
  while (true) {
    if (options_.parent && ::getppid() != *options_.parent) KillAll();
    for (Function& function : functions_) Step(function);
    functions_.remove_if([](const Function& function) {
      return function.stage == Stage::kGone && function.deleted;
    });
    const auto is_gone = [](const Function& function) { return function.stage == Stage::kGone; };
    while (std::count_if(functions_.begin(), functions_.end(), is_gone) >
           static_cast<ptrdiff_t>(kMaxGone)) {
      functions_.erase(std::find_if(functions_.begin(), functions_.end(), is_gone));
    }
    RemoveLeftGroups();
    if (stopping_ && leaving_.empty() &&
        std::all_of(functions_.begin(), functions_.end(), is_gone)) {
      break;
    }
    const bool busy = !leaving_.empty() ||
                      std::any_of(functions_.begin(), functions_.end(), [](const Function& f) {
                        return f.stage != Stage::kReady && f.stage != Stage::kGone;
                      });
    monitor_->WaitUntil(runtime_.clock.Now() + (busy ? kBusyTick : kIdleTick));
  }
  cgroups_.reset();
  ended_ = true;
}

void FunctionHost::KillAll() {
  stopping_ = true;
  for (Function& function : functions_) Terminate(function, 0);
}

void FunctionHost::Step(Function& function) {
  if (function.stage == Stage::kQueued) return Launch(function);
  if (function.stage == Stage::kGone) return;
  CheckMemory(function);
  Reap(function);
  if (function.stage == Stage::kStarting) LookForPort(function);
  if (function.stage == Stage::kTerminating && runtime_.clock.Now() >= function.kill_at) {
    ::kill(-function.pid, SIGKILL);
    Reap(function);
  }
}

void FunctionHost::Launch(Function& function) {
  Result<pid_t> pid = LaunchProcess(function);
  const bool program_fails = pid.status().code() == StatusCode::kFailedPrecondition;
  if (!pid.ok() && !IsPacing() && !program_fails) {
    // A group that cannot be made or joined after all (a delegation that ends above it): from here
    // on pace.
    LogWarning("host", "control groups do not work here; functions pace themselves",
               {{"because", pid.status().message()}});
    isolation_reason_ = pid.status().message();
    LeaveCgroup(function);
    cgroups_.reset();
    pid = LaunchProcess(function);
  }
  if (!pid.ok()) {
    LeaveCgroup(function);
    function.stage = Stage::kGone;
    function.ended = runtime_.clock.Now();
    function.reason = "NotStarted: " + pid.status().message();
    function.end = FunctionEnd::kByPlatform;
    LogError("host", "cannot start function",
             {{"uid", function.spec.uid}, {"error", pid.status().message()}});
    return;
  }
  function.pid = *pid;
  function.stage = Stage::kStarting;
}

Result<pid_t> FunctionHost::LaunchProcess(Function& function) {
  const FunctionGroup& group = function.spec.group;
  ProcessSpec process;
  process.arguments = {ProgramPath(options_.program_directory, group.program)};
  process.environment = OwnEnvironment();
  for (const auto& [name, value] : group.environment) process.environment[name] = value;
  process.environment["PORT"] = "0";
  if (HasPeerChannel(group)) process.environment[kPeerPortVariable] = "0";
  process.environment["LAMBDADNN_BIND"] = "127.0.0.1";
  process.environment["LAMBDADNN_PORT_FILE"] = FileOf(function.spec.uid, ".port");
  process.environment.erase("LAMBDADNN_MILLI_CPU");
  if (group.gpu > 0) process.environment[kVisibleGpus] = Join(function.gpus, ",");
  process.log_file = LogFile(function.spec.uid);
  if (!IsPacing()) {
    Result<std::unique_ptr<Cgroup>> cgroup =
        cgroups_->Create(function.spec.uid, {.memory_mib = group.memory_mib, .milli_cpu = 0});
    if (!cgroup.ok()) return cgroup.status();
    function.cgroup = *std::move(cgroup);
    process.cgroup_files = function.cgroup->ProcessFiles();
  } else {
    const std::string milli_cpu = std::to_string(group.milli_cpu);
    process.environment["LAMBDADNN_MILLI_CPU"] = milli_cpu;
    process.environment["LAMBDADNN_MILLI_CPU_FILE"] = FileOf(function.spec.uid, ".cpu");
    LDNN_RETURN_IF_ERROR(WriteFileAtomically(FileOf(function.spec.uid, ".cpu"), milli_cpu + "\n"));
  }
  return StartProcess(process);
}

void FunctionHost::LookForPort(Function& function) {
  if (function.port == 0) {
    const Result<std::string> text = ReadFile(FileOf(function.spec.uid, ".port"));
    if (!text.ok()) return;
    const std::vector<std::string> lines = Split(Trim(*text), '\n');
    function.port = static_cast<int>(ParseInteger(lines.front()).value_or(0));
    if (lines.size() > 1) {
      function.peer_port = static_cast<int>(ParseInteger(lines[1]).value_or(0));
    }
  }
  if (function.port <= 0 || !AnswersReady(function.port)) return;
  if (function.cgroup != nullptr) {
    const Status limited = function.cgroup->SetMilliCpu(function.spec.group.milli_cpu);
    if (!limited.ok()) LogWarning("host", limited.message());
  }
  function.stage = Stage::kReady;
  function.cold_start_seconds = ToSeconds(runtime_.clock.Now() - function.created);
  LogInfo("host", "function ready",
          {{"uid", function.spec.uid},
           {"pid", static_cast<int>(function.pid)},
           {"port", function.port},
           {"seconds", function.cold_start_seconds}});
}

void FunctionHost::CheckMemory(Function& function) {
  if (function.cgroup != nullptr || function.spec.group.memory_mib == 0) return;
  const int64_t limit_bytes = int64_t{function.spec.group.memory_mib} * 1024 * 1024;
  if (function.over_memory || ResidentBytesOf(function.pid) <= limit_bytes) return;
  function.over_memory = true;
  ::kill(-function.pid, SIGKILL);
}

void FunctionHost::Reap(Function& function) {
  int wait_status = 0;
  if (::waitpid(function.pid, &wait_status, WNOHANG) != function.pid) return;
  const bool out_of_memory = function.over_memory || (function.cgroup != nullptr &&
                                                      function.cgroup->OutOfMemoryKills() > 0);
  function.reason = out_of_memory ? "OOMKilled" : DescribeExit(wait_status);
  function.end = out_of_memory                ? FunctionEnd::kOutOfMemory
                 : EndedByItself(wait_status) ? FunctionEnd::kByItself
                                              : FunctionEnd::kByPlatform;
  function.stage = Stage::kGone;
  function.ended = runtime_.clock.Now();
  LeaveCgroup(function);
  std::error_code ignored;
  for (const char* extension : {".port", ".cpu"}) {
    fs::remove(FileOf(function.spec.uid, extension), ignored);
  }
  LogInfo("host", "function ended", {{"uid", function.spec.uid}, {"reason", function.reason}});
}

void FunctionHost::LeaveCgroup(Function& function) {
  if (function.cgroup == nullptr) return;
  leaving_.push_back({std::move(function.cgroup), runtime_.clock.Now()});
  RemoveLeftGroups();
}

void FunctionHost::RemoveLeftGroups() {
  const Instant now = runtime_.clock.Now();
  std::erase_if(leaving_, [now](LeftGroup& left) {
    const Status removed = left.group->Remove();
    if (removed.ok()) return true;
    if (now - left.since < kLeavingTime) return false;
    LogWarning("host", removed.message());
    return true;
  });
}

void FunctionHost::Terminate(Function& function, double grace_seconds) {
  function.deleted = true;
  if (function.stage == Stage::kGone) return;
  if (function.stage == Stage::kQueued) {
    function.stage = Stage::kGone;
    function.ended = runtime_.clock.Now();
    return;
  }
  const Instant kill_at = runtime_.clock.Now() + FromSeconds(grace_seconds);
  if (function.stage != Stage::kTerminating) {
    ::kill(function.pid, SIGTERM);
    function.kill_at = kill_at;
  }
  function.stage = Stage::kTerminating;
  function.kill_at = std::min(function.kill_at, kill_at);
}

FunctionHost::Function* FunctionHost::Find(const std::string& uid) {
  for (Function& function : functions_) {
    if (function.spec.uid == uid) return &function;
  }
  return nullptr;
}

std::string FunctionHost::FileOf(const std::string& uid, const char* extension) const {
  return options_.directory + "/functions/" + uid + extension;
}

std::string FunctionHost::LogFile(const std::string& uid) const {
  return options_.directory + "/logs/" + uid + ".log";
}

FunctionInstance FunctionHost::View(const Function& function) const {
  FunctionInstance view;
  view.uid = function.spec.uid;
  view.group = function.spec.group.name;
  view.cold_start_seconds = function.cold_start_seconds;
  const Instant now = runtime_.clock.Now();
  view.age_seconds = ToSeconds(now - function.created);
  if (function.ended.has_value()) view.ended_seconds = ToSeconds(now - *function.ended);
  switch (function.stage) {
    case Stage::kQueued:
    case Stage::kStarting:
      view.phase = FunctionPhase::kPending;
      break;
    case Stage::kReady:
      view.phase = FunctionPhase::kReady;
      break;
    case Stage::kTerminating:
      view.phase = FunctionPhase::kTerminating;
      break;
    case Stage::kGone:
      view.phase = FunctionPhase::kGone;
      view.reason = function.reason;
      view.end = function.end;
      view.last_log_line = LastLine(LogFile(function.spec.uid));
      break;
  }
  if (function.port != 0 && view.phase != FunctionPhase::kGone) {
    view.endpoint = {.host = "127.0.0.1", .port = function.port};
    if (function.peer_port != 0) {
      view.peer_address = "127.0.0.1:" + std::to_string(function.peer_port);
    }
  }
  return view;
}

}  // namespace lambdadnn
