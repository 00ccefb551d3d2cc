// SPDX-License-Identifier: Apache-2.0
// From measurements of a few functions to the profile that the planner needs: which sizes to
// measure, and the training rate R(m) that they give (docs/theory.md, section 3).
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/plan/workload.h"
#include "common/protocol/slice.h"
#include "operator/api/backend_kind.h"
#include "operator/api/job.h"

namespace lambdadnn {

// Raised whenever profiles measure something new: older ones are not used then.
inline constexpr int kProfileForm = 24;

struct ProfilePlan {
  // Descending; the functions are made at the first and slowed down to the others by their CPU
  // quota, where the platform can change that.
  std::vector<int> memory_mib;
  // The first measures; the others are given `filler_milli_cpu` and keep the rest of the machine
  // busy meanwhile, as the run will.
  int functions = 1;
  int filler_milli_cpu = 0;
  int batch_size = 1;  // samples of a step
  int gpu = 0;         // of each function
};
ProfilePlan MakeProfilePlan(const JobSpec& spec, const Platform& platform);

// What the measuring function measured at one size.
struct ProfileSample {
  int memory_mib = 0;
  SliceRecord record;
  double core_share = 1;  // of a core, that the function had; as it was measured, of all sizes
};
// Of a core, for one thread of a function of this size.
double CoreShareOf(const Platform& platform, int memory_mib);

// What a function with the quota of another size would have measured, where the platform cannot
// change that of a running one: its threads compute for as long as they did, on the cores that such
// a function has. With a GPU they take as long at every size: a quota is none of what it computes.
ProfileSample AtSize(const ProfileSample& measured, const Platform& platform, int memory_mib,
                     int gpu = 0);

// StartSlowdown of one of `functions` that start at once, under the quota of this size.
double StartSlowdownAt(const Platform& platform, int functions, int memory_mib);
// Of such a cold start, what it would have been with a core of its own and no other beside it.
double WithAWholeCore(double cold_start_seconds, double start_cpu_seconds, const Platform& platform,
                      int functions, int memory_mib);

// Seconds of the life of a function that measured: from its creation until it was ready, from the
// end of its last slice until it was gone, and what lies in front of it adds to a request.
struct FunctionTimes {
  double cold_start = 0;
  double release = 0;
  double hop = 0;
};

struct ProfileFit {
  // residual = the largest relative one: of a point from the fitted rate, or of the two halves of a
  // measurement from their mean.
  WorkloadProfile profile;
  std::string worst;  // "at 256 MiB: measured 93 samples/s, the line says 110"
};
// kFailedPrecondition, with what to do, when nothing usable was measured.
Result<ProfileFit> FitProfile(const std::vector<ProfileSample>& samples, int batch_size,
                              const FunctionTimes& times);

// The form of R(m) that the points fit best: FitLine, or growing with memory up to a ceiling.
TrainingRate FitRate(const std::vector<TrainingRate::Point>& points);

// A line through points by least squares; through the origin when there is one point.
TrainingRate FitLine(const std::vector<TrainingRate::Point>& points);

// What profiles of equal jobs share and is known before functions run: model, data set, batch,
// sizes, backend and image. The name under which a profile is kept. `worker_image` = of jobs that
// name none.
std::string ProfileSignature(const JobSpec& spec, const Platform& platform, BackendKind backend,
                             const std::string& worker_image);

}  // namespace lambdadnn
