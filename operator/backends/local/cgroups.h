// SPDX-License-Identifier: Apache-2.0
// Linux control groups, version 1 or 2: memory limit and CPU quota of one local function.
//
// Groups are made under "lambdadnn/<host>/" below this process' own group, or below the nearest
// ancestor where that is permitted, so they stay inside whatever limits the machine has set.
// Thread-compatible.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace lambdadnn {

// Short, as on FaaS platforms: a function of a tenth of a CPU works 2 ms of every 20. Unused quota
// may be used in the next period where the kernel supports it (5.14 and later): without this burst,
// a function that sometimes waits for others gets less than its quota.
inline constexpr int kCpuPeriodMicroseconds = 20'000;

struct CgroupLimits {
  int memory_mib = 0;  // 0 = none
  int milli_cpu = 0;   // 0 = none
};

// One group; empty once its processes have ended.
class Cgroup {
 public:
  // `folders` are the group's folders: one for version 2, one per controller for version 1.
  Cgroup(int version, std::string cpu_folder, std::string memory_folder);

  // A process that writes "0" into each of these files joins the group.
  std::vector<std::string> ProcessFiles() const;
  Status SetMilliCpu(int milli_cpu);
  Status SetMemoryMib(int memory_mib);
  // Processes that the kernel killed here because memory ran out.
  int64_t OutOfMemoryKills() const;
  // kUnavailable while processes are left.
  Status Remove();

 private:
  const int version_;
  const std::string cpu_folder_;
  const std::string memory_folder_;
};

class CgroupTree {
 public:
  // Finds out by trying. `name` is this host's folder: unique among live processes, and beginning
  // with their pid and '-'. `proc` is "/proc" but for tests.
  // kFailedPrecondition says why no groups can be made here.
  static Result<std::unique_ptr<CgroupTree>> Open(const std::string& name,
                                                  const std::string& proc = "/proc");
  ~CgroupTree();  // removes the host's folder
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  int version() const { return version_; }
  Result<std::unique_ptr<Cgroup>> Create(const std::string& name, const CgroupLimits& limits);

 private:
  CgroupTree(int version, std::string cpu_folder, std::string memory_folder)
      : version_(version),
        cpu_folder_(std::move(cpu_folder)),
        memory_folder_(std::move(memory_folder)) {}

  const int version_;
  const std::string cpu_folder_;     // of this host
  const std::string memory_folder_;  // the same as cpu_folder_ in version 2
};

// Where the kernel has mounted what, and in which groups this process is: from the text of
// /proc/self/mountinfo and /proc/self/cgroup. Empty paths = not there.
struct CgroupPlaces {
  std::string v2_mount;
  std::string v2_path;
  std::string cpu_mount;  // version 1
  std::string cpu_path;
  std::string memory_mount;
  std::string memory_path;
  friend bool operator==(const CgroupPlaces&, const CgroupPlaces&) = default;
};
CgroupPlaces FindCgroups(const std::string& mountinfo, const std::string& cgroup);

// Of a hierarchy: mount + path, mount + the parent of path, …, mount, so the own group first; those
// that are there. Inside a container the path may be the outer machine's and not exist.
std::vector<std::string> CgroupFolders(const std::string& mount, std::string path);

}  // namespace lambdadnn
