// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning/profile_sizes.h"

#include <algorithm>
#include <cstdlib>

namespace lambdadnn {
namespace {

const ProfileSample* Find(const std::vector<ProfileSample>& samples, int memory_mib) {
  const auto found = std::ranges::find(samples, memory_mib, &ProfileSample::memory_mib);
  return found == samples.end() ? nullptr : &*found;
}

// The memory of the workers of the plan that the job would get; nullopt = it would get none.
std::optional<int> MemoryOfPlan(const Job& job, const Platform& platform, const JobSpent& spent,
                                const ProfilePlan& plan,
                                const std::vector<ProfileSample>& measured) {
  const auto fit = FitProfile(WithDerivedSamples(measured, platform, plan), plan.batch_size, {});
  if (!fit.ok()) return std::nullopt;
  Job profiled = job;
  profiled.status.profile = fit->profile;
  const auto outcome = MakePlan(PlannerInputOf(profiled, platform, spent, false));
  if (!outcome.ok() || !outcome->feasible) return std::nullopt;
  return outcome->plan.memory_mib;
}

}  // namespace

std::vector<ProfileSample> WithDerivedSamples(const std::vector<ProfileSample>& measured,
                                              const Platform& platform, const ProfilePlan& plan) {
  std::vector<ProfileSample> samples;
  const ProfileSample* larger = nullptr;
  for (const int memory_mib : plan.memory_mib) {  // descending
    if (const ProfileSample* const found = Find(measured, memory_mib); found != nullptr) {
      larger = found;
      // Of its own size too: a measurement of tenths of a second finds quota that was saved up.
      samples.push_back(AtSize(*found, platform, memory_mib, plan.gpu));
    } else if (larger != nullptr) {
      samples.push_back(AtSize(*larger, platform, memory_mib, plan.gpu));
    }
  }
  return samples;
}

std::optional<int> NextProfileSize(const Job& job, const Platform& platform, const JobSpent& spent,
                                   const ProfilePlan& plan,
                                   const std::vector<ProfileSample>& measured) {
  const auto left = std::ranges::find_if(
      plan.memory_mib, [&](int memory_mib) { return Find(measured, memory_mib) == nullptr; });
  if (left == plan.memory_mib.end()) return std::nullopt;
  if (left == plan.memory_mib.begin()) return *left;  // what all others are derived from
  const std::optional<int> wanted = MemoryOfPlan(job, platform, spent, plan, measured);
  if (!wanted) return *left;
  const int nearest = *std::ranges::min_element(
      plan.memory_mib, {}, [&](int memory_mib) { return std::abs(memory_mib - *wanted); });
  return Find(measured, nearest) == nullptr ? std::optional(nearest) : std::nullopt;
}

}  // namespace lambdadnn
