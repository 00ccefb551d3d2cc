// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/cpu_pacer.h"

#include <algorithm>

#include "common/base/files.h"
#include "common/base/text.h"

namespace lambdadnn {
namespace {

// Idle time earns credit for this long at most: as with a cgroup's period, time not used is lost.
constexpr Duration kBurst = std::chrono::milliseconds(20);

}  // namespace

CpuPacer::CpuPacer(Clock& clock, int milli_cpu, CpuClock cpu_clock)
    : clock_(clock),
      cpu_clock_(std::move(cpu_clock)),
      milli_cpu_(milli_cpu),
      last_wall_(clock.Now()),
      last_cpu_(cpu_clock_()) {}

void CpuPacer::Pace() {
  ReadQuotaFile();
  Duration sleep{};
  {
    std::lock_guard lock(mutex_);
    const Instant wall = clock_.Now();
    const Duration cpu = cpu_clock_();
    const double quota = milli_cpu_ / 1000.0;
    debt_ += (cpu - last_cpu_) - FromSeconds(ToSeconds(wall - last_wall_) * quota);
    debt_ = std::max(debt_, -FromSeconds(ToSeconds(kBurst) * quota));
    last_wall_ = wall;
    last_cpu_ = cpu;
    if (milli_cpu_ <= 0) debt_ = Duration::zero();
    if (debt_ > Duration::zero()) sleep = FromSeconds(ToSeconds(debt_) / quota);
  }
  if (sleep <= Duration::zero()) return;
  const Instant begin = clock_.Now();
  clock_.SleepFor(sleep);
  const Duration slept = clock_.Now() - begin;
  Duration before = slept_.load();
  while (!slept_.compare_exchange_weak(before, before + slept)) {
  }
}

void CpuPacer::SetMilliCpu(int milli_cpu) {
  std::lock_guard lock(mutex_);
  if (milli_cpu_ == milli_cpu) return;
  milli_cpu_ = milli_cpu;
  // What was used under the old quota is settled.
  debt_ = Duration::zero();
  last_wall_ = clock_.Now();
  last_cpu_ = cpu_clock_();
}

int CpuPacer::milli_cpu() const {
  std::lock_guard lock(mutex_);
  return milli_cpu_;
}

void CpuPacer::ReadQuotaFile() {
  if (quota_file_.empty()) return;
  const Result<std::string> text = ReadFile(quota_file_);
  if (!text.ok()) return;  // the host has gone: the last quota holds
  if (const std::optional<long long> value = ParseInteger(Trim(*text)); value && *value >= 0) {
    SetMilliCpu(static_cast<int>(std::min<long long>(*value, 1'000'000)));
  }
}

}  // namespace lambdadnn
