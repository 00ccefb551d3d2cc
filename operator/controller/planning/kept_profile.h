// SPDX-License-Identifier: Apache-2.0
// A profile that outlives the job that measured it, for later jobs of the same ProfileSignature.
// What a signature cannot tell before functions run, what they compute with and on what nodes, is
// kept beside the numbers: where functions of a job turn out to differ, it is used no more.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/plan/workload.h"
#include "common/protocol/numerics_fingerprint.h"
#include "operator/backends/function_backend.h"

namespace lambdadnn {

// The measuring function; "" = what its platform does not tell.
struct MeasuredOn {
  std::string image = {};
  std::string node_kind = {};
  NumericsFingerprint fingerprint = {};
  int largest_mib = 0;   // the largest size that was measured
  int pods_at_once = 1;  // that started with it on its node, itself counted
  friend bool operator==(const MeasuredOn&, const MeasuredOn&) = default;
};

struct KeptProfile {
  WorkloadProfile profile;
  MeasuredOn on;
  friend bool operator==(const KeptProfile&, const KeptProfile&) = default;
};

// The largest text that is read; a profile takes some 4 KiB.
inline constexpr uint64_t kMaxKeptProfileBytes = uint64_t{64} << 10;

std::string EncodeKeptProfile(const KeptProfile& kept);
// Of any bytes, which somebody else may have written: kInvalidArgument with a sentence about what
// is no profile, is one of another version (kProfileForm), or has a number that spec.profile may
// not have.
Result<KeptProfile> DecodeKeptProfile(std::string_view text);

// "runs on m5.large, and the profile was measured on c5.large", after the function's name; empty
// when the function is as the one that measured, as far as both are known.
std::string DifferenceFrom(const MeasuredOn& on, const InstanceHost& host,
                           const NumericsFingerprint& fingerprint);

}  // namespace lambdadnn
