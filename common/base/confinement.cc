// SPDX-License-Identifier: Apache-2.0
#include "common/base/confinement.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "common/base/check.h"

namespace lambdadnn {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "no filter of system calls for this processor"
#endif

// Calls of the 32-bit ABI of x86-64 (x32) have this bit, and numbers of their own.
constexpr uint32_t kOtherAbi = 0x40000000;

constexpr long kRefused[] = {
    // the network
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    // programs, processes, and other processes
    SYS_execve,
    SYS_execveat,
    SYS_unshare,
    SYS_setns,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kill,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    // files
    SYS_unlinkat,
    SYS_renameat2,
    SYS_mkdirat,
    SYS_mknodat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_truncate,
    SYS_ftruncate,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_utimensat,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_by_handle_at,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
    SYS_unlink,
    SYS_rename,
    SYS_mkdir,
    SYS_rmdir,
    SYS_mknod,
    SYS_link,
    SYS_symlink,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_creat,
#endif
};
// The C library uses an older call in the place of these, whose arguments the filter can see.
constexpr long kUnknown[] = {SYS_clone3, SYS_openat2};

constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kNoSuchCall = SECCOMP_RET_ERRNO | ENOSYS;
constexpr uint32_t kWriteFlags = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;

using Filter = std::vector<sock_filter>;

void Add(Filter& filter, uint32_t code, uint32_t value, uint8_t if_true = 0, uint8_t if_false = 0) {
  filter.push_back({static_cast<uint16_t>(code), if_true, if_false, value});
}
void Load(Filter& filter, size_t offset) {
  Add(filter, BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}
void Return(Filter& filter, uint32_t action) { Add(filter, BPF_RET | BPF_K, action); }
// The lower half of an argument; the machines above are little-endian.
size_t ArgumentOffset(size_t argument) {
  return offsetof(seccomp_data, args) + argument * sizeof(uint64_t);
}

// `call` is refused where its argument has one of `bits`, or where it has none of them.
enum class Refuse { kWithBits, kWithoutBits };
void CheckBits(Filter& filter, long call, size_t argument, uint32_t bits, Refuse refuse) {
  Add(filter, BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 4);
  Load(filter, ArgumentOffset(argument));
  const bool with = refuse == Refuse::kWithBits;
  Add(filter, BPF_JMP | BPF_JSET | BPF_K, bits, with ? 0 : 1, with ? 1 : 0);
  Return(filter, kRefuse);
  Return(filter, SECCOMP_RET_ALLOW);
}

// For each call the whole filter runs, microseconds at most.
Filter MakeFilter() {
  Filter filter;
  Load(filter, offsetof(seccomp_data, arch));
  Add(filter, BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
  Return(filter, kRefuse);
  Load(filter, offsetof(seccomp_data, nr));
  Add(filter, BPF_JMP | BPF_JGE | BPF_K, kOtherAbi, 0, 1);
  Return(filter, kRefuse);
  for (const long call : kRefused) {
    Add(filter, BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1);
    Return(filter, kRefuse);
  }
  for (const long call : kUnknown) {
    Add(filter, BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1);
    Return(filter, kNoSuchCall);
  }
  CheckBits(filter, SYS_clone, 0, CLONE_THREAD, Refuse::kWithoutBits);
#ifdef SYS_open
  CheckBits(filter, SYS_open, 1, kWriteFlags, Refuse::kWithBits);
#endif
  CheckBits(filter, SYS_openat, 2, kWriteFlags, Refuse::kWithBits);
  // abort() signals its own thread by this call.
  Add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 3);
  Load(filter, ArgumentOffset(0));
  Add(filter, BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(getpid()), 1, 0);
  Return(filter, kRefuse);
  Return(filter, SECCOMP_RET_ALLOW);
  return filter;
}

Status CannotConfine(const std::string& what) {
  return FailedPreconditionError("this machine cannot confine a process (" + what + ": " +
                                 std::strerror(errno) +
                                 "); use a Linux kernel with seccomp, outside an emulator");
}

// `spare`: beyond the limit, where the kernel ends a process that goes on behind its warning.
Status SetLimit(__rlimit_resource_t resource, int64_t value, int64_t spare = 0) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return CannotConfine("getrlimit");
  limit.rlim_max = std::min(limit.rlim_max, static_cast<rlim_t>(value + spare));
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(value));
  return setrlimit(resource, &limit) == 0 ? OkStatus() : CannotConfine("setrlimit");
}

// In bytes: the first number of statm is in pages.
int64_t MappedBytes() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

int64_t UsedCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + 1;
}

// `flags`: SECCOMP_FILTER_FLAG_TSYNC = of all threads.
Status FilterSystemCalls(unsigned long flags) {
  Filter filter = MakeFilter();
  sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return CannotConfine("no_new_privs");
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0) return OkStatus();
  return CannotConfine("seccomp");
}

}  // namespace

Status ConfineThisProcess(const ConfinementLimits& limits) {
  LDNN_CHECK(limits.more_memory_bytes > 0 && limits.more_cpu_seconds > 0, "limits of nothing");
  LDNN_RETURN_IF_ERROR(SetLimit(RLIMIT_CORE, 0));
  LDNN_RETURN_IF_ERROR(SetLimit(RLIMIT_AS, MappedBytes() + limits.more_memory_bytes));
  LDNN_RETURN_IF_ERROR(
      SetLimit(RLIMIT_CPU, UsedCpuSeconds() + limits.more_cpu_seconds, /*spare=*/1));
  return FilterSystemCalls(SECCOMP_FILTER_FLAG_TSYNC);
}

Status ConfineThisThread() { return FilterSystemCalls(0); }

}  // namespace lambdadnn
