// SPDX-License-Identifier: Apache-2.0
#include "common/base/wakeup_row.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

namespace lambdadnn {
namespace {

// One page: few enough to cost nothing, enough that objects waited for at a time rarely share.
constexpr size_t kCounters = 1024;
constexpr size_t kBytes = kCounters * sizeof(uint32_t);

long Futex(uint32_t* counter, int operation, uint32_t value, const timespec* timeout) {
  return ::syscall(SYS_futex, counter, operation, value, timeout, nullptr, 0);
}

}  // namespace

Result<std::unique_ptr<WakeupRow>> WakeupRow::Open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return UnavailableError("opening " + path + ": " + std::strerror(errno));
  // Never shorter: another process may have mapped it.
  struct stat info{};
  void* mapped = MAP_FAILED;
  if (::fstat(file, &info) == 0 &&
      (info.st_size >= static_cast<off_t>(kBytes) || ::ftruncate(file, kBytes) == 0)) {
    mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  const int error = errno;
  ::close(file);
  if (mapped == MAP_FAILED)
    return UnavailableError("mapping " + path + ": " + std::strerror(error));
  return std::unique_ptr<WakeupRow>(new WakeupRow(static_cast<uint32_t*>(mapped)));
}

WakeupRow::~WakeupRow() { ::munmap(counters_, kBytes); }

uint32_t* WakeupRow::CounterOf(uint64_t number) const { return counters_ + number % kCounters; }

uint32_t WakeupRow::Rung(uint64_t number) const {
  return std::atomic_ref<uint32_t>(*CounterOf(number)).load();
}

void WakeupRow::Ring(uint64_t number) {
  uint32_t* const counter = CounterOf(number);
  std::atomic_ref<uint32_t>(*counter).fetch_add(1);
  Futex(counter, FUTEX_WAKE, INT_MAX, nullptr);
}

void WakeupRow::Wait(uint64_t number, uint32_t seen, Duration at_most) const {
  if (at_most <= Duration::zero()) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(seconds.count());
  timeout.tv_nsec = static_cast<long>((at_most - seconds).count());
  Futex(CounterOf(number), FUTEX_WAIT, seen, &timeout);
}

}  // namespace lambdadnn
