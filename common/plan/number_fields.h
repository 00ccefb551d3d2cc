// SPDX-License-Identifier: Apache-2.0
// The numbers of a profile and of a platform, one row each: its name in JSON, its unit, and where
// it lies. Codecs and checks go by these tables, so that no number is read without a range.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "common/plan/workload.h"

namespace lambdadnn {

// What a number counts, and so what it can be: kUnitRanges of number_fields.cc.
enum class Unit {
  kCount,
  kSeconds,
  kBytes,
  kBytesPerSecond,
  kSamplesPerSecond,
  kMib,
  kMilliCpu,
  kShare,
  kMoney,
};

// Empty for a number in its unit's range (zero is), else what is wrong with it, after its name:
// "is -1, and must be seconds from 0 to 1e+09; correct it or leave it out".
std::string ProblemOf(double value, Unit unit);

// What zero means in JSON. Nothing real has a bandwidth, a quota or a latency of zero, and files
// were written with zero for what was not known.
enum class Zero { kValue, kNotStated };

template <typename Owner>
struct NumberField {
  const char* name;  // from the owner down: "store.bytesPerSecond"
  Unit unit;
  Zero zero;
  void (*set)(Owner*, const OptionalQuantity&);
  // A plain number is always known.
  OptionalQuantity (*get)(const Owner&);

  // As a file gives it.
  void Give(Owner* owner, double value) const {
    const bool stated = value != 0 || zero == Zero::kValue;
    set(owner, stated ? OptionalQuantity(value) : OptionalQuantity());
  }
};

using ProfileNumber = NumberField<WorkloadProfile>;
using PlatformNumber = NumberField<Platform>;

// Decimals of a profile, but for its rates.
std::span<const ProfileNumber> ProfileDecimals();
// Whole numbers of it, but for trainingSamples.
std::span<const ProfileNumber> ProfileWholes();
std::span<const PlatformNumber> PlatformNumbers();

// The first number that cannot be, or numbers that contradict each other: "profile.residual is -1,
// and must be …". `what` is the profile's or the platform's path, without a dot. A profile may lack
// what is required of one that a plan is made from.
std::optional<std::string> ProblemOf(const WorkloadProfile& profile, const std::string& what);
std::optional<std::string> ProblemOf(const Platform& platform, const std::string& what);
// Of the line of function.storeBytesPerSecond: it is above 0 for some size at least; empty, or what
// is wrong with it.
std::string ProblemOfStoreLine(const Platform& platform);

}  // namespace lambdadnn
