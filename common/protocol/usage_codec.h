// SPDX-License-Identifier: Apache-2.0
// JSON forms of what a slice spent: of completion records, the history of a run and its report
// (docs/formats.md, "Slices"). Decoding reports what is unknown, negative or beyond the bounds with
// its path; what is absent is zero.
#pragma once

#include <string>
#include <vector>

#include "common/base/phase_usage.h"
#include "common/base/request_latency.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

// Most of one value, so that sums stay finite and exact: 30 years, and a request a microsecond.
inline constexpr double kMostUsageSeconds = 1e9;
inline constexpr int64_t kMostUsageRequests = 1'000'000'000'000'000;

// {"load": {"wallSeconds": 1.5, "cpuSeconds": 1.25, "throttledSeconds": 0, "requests": 3}, …}
Json PhaseUsagesToJson(const PhaseUsages& usages);
// A number in place of a phase is its wall time: of functions that told no more.
PhaseUsages ReadPhaseUsages(const Json& json, const std::string& path,
                            std::vector<FieldError>* errors);

// {"put": {"seconds": 0.5, "counts": [0, 0, 7, …]}, …}
Json LatenciesToJson(const RequestLatencies& latencies);
RequestLatencies ReadLatencies(const Json& json, const std::string& path,
                               std::vector<FieldError>* errors);

}  // namespace lambdadnn
