// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/cgroups.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/base/files.h"
#include "common/base/text.h"

namespace lambdadnn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "lambdadnn";
// The kernel takes no smaller quota.
constexpr int kMinQuotaMicroseconds = 1000;

// Control files take one write() each; a temporary file and rename would be refused.
Status WriteControl(const std::string& path, const std::string& value) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return UnavailableError("opening " + path + ": " + std::strerror(errno));
  }
  const ssize_t written = ::write(descriptor, value.data(), value.size());
  const int error = errno;
  ::close(descriptor);
  if (written != static_cast<ssize_t>(value.size())) {
    return UnavailableError("writing '" + value + "' to " + path + ": " + std::strerror(error));
  }
  return OkStatus();
}

Status MakeFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return OkStatus();
  return UnavailableError("making " + path + ": " + std::strerror(errno));
}

Status RemoveFolder(const std::string& path) {
  if (path.empty() || ::rmdir(path.c_str()) == 0 || errno == ENOENT) return OkStatus();
  return UnavailableError("removing " + path + ": " + std::strerror(errno));
}

// The value of "key N" in a file of such lines; 0 when there is none.
int64_t ReadKeyedValue(const std::string& path, std::string_view key) {
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return 0;
  for (const std::string& line : Split(*text, '\n')) {
    const size_t space = line.find(' ');
    if (space == std::string::npos || line.substr(0, space) != key) continue;
    return ParseInteger(Trim(std::string_view(line).substr(space + 1))).value_or(0);
  }
  return 0;
}

// Folders "<pid>-…" of hosts that were killed.
void SweepDeadHosts(const std::string& parent) {
  std::error_code ignored;
  for (const fs::directory_entry& host : fs::directory_iterator(parent, ignored)) {
    const std::string name = host.path().filename().string();
    const std::optional<long long> pid = ParseInteger(name.substr(0, name.find('-')));
    if (!host.is_directory(ignored) || !pid || *pid <= 1) continue;
    if (::kill(static_cast<pid_t>(*pid), 0) == 0 || errno != ESRCH) continue;
    for (const fs::directory_entry& function : fs::directory_iterator(host.path(), ignored)) {
      if (function.is_directory(ignored)) ::rmdir(function.path().c_str());
    }
    ::rmdir(host.path().c_str());
  }
}

// Makes a group with limits and removes it again: permissions, controllers and the limits of outer
// groups are all found out at once.
Status Try(int version, const std::string& cpu_folder, const std::string& memory_folder) {
  const std::string cpu = cpu_folder + "/try";
  const std::string memory = memory_folder + "/try";
  Status status = MakeFolder(cpu);
  if (status.ok()) status = MakeFolder(memory);
  Cgroup group(version, cpu, memory);
  constexpr int kTryMib = 64;
  constexpr int kTryMilliCpu = 100;
  if (status.ok()) status = group.SetMemoryMib(kTryMib);
  if (status.ok()) status = group.SetMilliCpu(kTryMilliCpu);
  const Status removed = group.Remove();
  return status.ok() ? removed : status;
}

Result<std::string> MakeVersion2Folder(const std::string& base, const std::string& name) {
  // Fails harmlessly where the controllers are on already or may not be turned on; Try() decides.
  WriteControl(base + "/cgroup.subtree_control", "+cpu +memory").ok();
  const std::string outer = base + "/" + kFolder;
  LDNN_RETURN_IF_ERROR(MakeFolder(outer));
  WriteControl(outer + "/cgroup.subtree_control", "+cpu +memory").ok();
  SweepDeadHosts(outer);
  const std::string folder = outer + "/" + name;
  LDNN_RETURN_IF_ERROR(MakeFolder(folder));
  WriteControl(folder + "/cgroup.subtree_control", "+cpu +memory").ok();
  const Status tried = Try(2, folder, folder);
  if (tried.ok()) return folder;
  RemoveFolder(folder).ok();
  RemoveFolder(outer).ok();
  return tried;
}

Result<std::string> MakeVersion1Folder(const std::string& base, const std::string& name) {
  const std::string outer = base + "/" + kFolder;
  LDNN_RETURN_IF_ERROR(MakeFolder(outer));
  SweepDeadHosts(outer);
  const std::string folder = outer + "/" + name;
  LDNN_RETURN_IF_ERROR(MakeFolder(folder));
  return folder;
}

}  // namespace

Cgroup::Cgroup(int version, std::string cpu_folder, std::string memory_folder)
    : version_(version),
      cpu_folder_(std::move(cpu_folder)),
      memory_folder_(std::move(memory_folder)) {}

std::vector<std::string> Cgroup::ProcessFiles() const {
  if (version_ == 2) return {cpu_folder_ + "/cgroup.procs"};
  return {cpu_folder_ + "/cgroup.procs", memory_folder_ + "/cgroup.procs"};
}

Status Cgroup::SetMilliCpu(int milli_cpu) {
  const int quota = std::max(static_cast<int>(int64_t{milli_cpu} * kCpuPeriodMicroseconds / 1000),
                             kMinQuotaMicroseconds);
  const std::string period = std::to_string(kCpuPeriodMicroseconds);
  const std::string burst = cpu_folder_ + (version_ == 2 ? "/cpu.max.burst" : "/cpu.cfs_burst_us");
  const bool can_burst = ::access(burst.c_str(), W_OK) == 0;
  // No quota may be below the burst that stands.
  if (can_burst) LDNN_RETURN_IF_ERROR(WriteControl(burst, "0"));
  if (version_ == 2) {
    const std::string value = milli_cpu <= 0 ? "max" : std::to_string(quota);
    LDNN_RETURN_IF_ERROR(WriteControl(cpu_folder_ + "/cpu.max", value + " " + period));
  } else {
    LDNN_RETURN_IF_ERROR(WriteControl(cpu_folder_ + "/cpu.cfs_period_us", period));
    LDNN_RETURN_IF_ERROR(WriteControl(cpu_folder_ + "/cpu.cfs_quota_us",
                                      milli_cpu <= 0 ? "-1" : std::to_string(quota)));
  }
  if (!can_burst || milli_cpu <= 0) return OkStatus();
  return WriteControl(burst, std::to_string(quota));
}

Status Cgroup::SetMemoryMib(int memory_mib) {
  const std::string bytes = std::to_string(int64_t{memory_mib} * 1024 * 1024);
  if (version_ == 2) {
    LDNN_RETURN_IF_ERROR(
        WriteControl(memory_folder_ + "/memory.max", memory_mib <= 0 ? "max" : bytes));
    // A function that swaps would be slow instead of killed; not every kernel has the file.
    if (::access((memory_folder_ + "/memory.swap.max").c_str(), W_OK) == 0) {
      return WriteControl(memory_folder_ + "/memory.swap.max", "0");
    }
    return OkStatus();
  }
  return WriteControl(memory_folder_ + "/memory.limit_in_bytes", memory_mib <= 0 ? "-1" : bytes);
}

int64_t Cgroup::OutOfMemoryKills() const {
  return ReadKeyedValue(memory_folder_ + (version_ == 2 ? "/memory.events" : "/memory.oom_control"),
                        "oom_kill");
}

Status Cgroup::Remove() {
  const Status cpu = RemoveFolder(cpu_folder_);
  const Status memory = memory_folder_ == cpu_folder_ ? OkStatus() : RemoveFolder(memory_folder_);
  return cpu.ok() ? memory : cpu;
}

CgroupPlaces FindCgroups(const std::string& mountinfo, const std::string& cgroup) {
  CgroupPlaces places;
  for (const std::string& line : Split(mountinfo, '\n')) {
    // "36 35 98:0 /root /mount/point rw,... shared:1 - cgroup cgroup rw,cpu"
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> front = Split(std::string_view(line).substr(0, dash), ' ');
    const std::vector<std::string> back = Split(std::string_view(line).substr(dash + 3), ' ');
    if (front.size() < 5 || back.size() < 3) continue;
    if (back[0] == "cgroup2" && places.v2_mount.empty()) places.v2_mount = front[4];
    if (back[0] != "cgroup") continue;
    for (const std::string& option : Split(back[2], ',')) {
      if (option == "cpu") places.cpu_mount = front[4];
      if (option == "memory") places.memory_mount = front[4];
    }
  }
  for (const std::string& line : Split(cgroup, '\n')) {
    // "4:memory:/path", "0::/path" for version 2
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) places.v2_path = path;
    for (const std::string& controller : Split(controllers, ',')) {
      if (controller == "cpu") places.cpu_path = path;
      if (controller == "memory") places.memory_path = path;
    }
  }
  return places;
}

std::vector<std::string> CgroupFolders(const std::string& mount, std::string path) {
  std::vector<std::string> folders;
  while (path.size() > 1) {
    folders.push_back(mount + path);
    const size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
  folders.push_back(mount);
  std::erase_if(folders, [](const std::string& folder) {
    std::error_code ignored;
    return !fs::is_directory(folder, ignored);
  });
  return folders;
}

Result<std::unique_ptr<CgroupTree>> CgroupTree::Open(const std::string& name,
                                                     const std::string& proc) {
  LDNN_ASSIGN_OR_RETURN(const std::string mountinfo, ReadFile(proc + "/self/mountinfo"));
  LDNN_ASSIGN_OR_RETURN(const std::string cgroup, ReadFile(proc + "/self/cgroup"));
  const CgroupPlaces places = FindCgroups(mountinfo, cgroup);
  Status last = NotFoundError("no cgroup hierarchy with CPU and memory is mounted");
  if (!places.cpu_mount.empty() && !places.memory_mount.empty()) {
    const auto cpu_bases = CgroupFolders(places.cpu_mount, places.cpu_path);
    const auto memory_bases = CgroupFolders(places.memory_mount, places.memory_path);
    if (!cpu_bases.empty() && !memory_bases.empty()) {
      Result<std::string> cpu = MakeVersion1Folder(cpu_bases.front(), name);
      Result<std::string> memory = MakeVersion1Folder(memory_bases.front(), name);
      last = !cpu.ok() ? cpu.status() : memory.status();
      if (cpu.ok() && memory.ok()) last = Try(1, *cpu, *memory);
      std::unique_ptr<CgroupTree> tree(new CgroupTree(1, cpu.ok() ? *cpu : std::string(),
                                                      memory.ok() ? *memory : std::string()));
      if (last.ok()) return tree;
    }
  }
  if (!places.v2_mount.empty()) {
    for (const std::string& base : CgroupFolders(places.v2_mount, places.v2_path)) {
      const Result<std::string> folder = MakeVersion2Folder(base, name);
      if (folder.ok()) {
        return std::unique_ptr<CgroupTree>(new CgroupTree(2, *folder, *folder));
      }
      last = folder.status();
    }
  }
  return FailedPreconditionError("no control groups can be made: " + last.message());
}

CgroupTree::~CgroupTree() {
  for (const std::string& folder : {cpu_folder_, memory_folder_}) {
    if (folder.empty()) continue;
    RemoveFolder(folder).ok();
    // Shared with other hosts: goes with the last one.
    RemoveFolder(fs::path(folder).parent_path().string()).ok();
  }
}

Result<std::unique_ptr<Cgroup>> CgroupTree::Create(const std::string& name,
                                                   const CgroupLimits& limits) {
  const std::string cpu = cpu_folder_ + "/" + name;
  const std::string memory = memory_folder_ + "/" + name;
  LDNN_RETURN_IF_ERROR(MakeFolder(cpu));
  auto group = std::make_unique<Cgroup>(version_, cpu, memory);
  Status status = MakeFolder(memory);
  if (status.ok()) status = group->SetMemoryMib(limits.memory_mib);
  if (status.ok()) status = group->SetMilliCpu(limits.milli_cpu);
  if (status.ok()) return group;
  group->Remove().ok();
  return status.WithContext("control group " + name);
}

}  // namespace lambdadnn
