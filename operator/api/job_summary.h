// SPDX-License-Identifier: Apache-2.0
// A job's status in the few words that `kubectl get` shows: status.summary, from which the printer
// columns read. A pure function of the status.
#pragma once

#include <string>

#include "common/json/json_reader.h"
#include "operator/api/job.h"

namespace lambdadnn {

struct JobSummary {
  std::string functions;  // "6/8": ready of desired workers
  std::string memory;     // "1728Mi"
  std::string epoch;      // "2/3"
  std::string loss;       // "0.0313"
  std::string eta;        // "1m20s"
  std::string cost;       // "$0.0123"
  std::string reason;     // of the condition that tells most
  std::string plan;       // "8 x 1728Mi, 2 shards, layers 1-2-8"
};

JobSummary Summarize(const JobStatus& status);
// As it is written; what is no field here, or no text, is left out.
JobSummary DecodeSummary(const Json& json);
// Without the empty ones.
Json EncodeSummary(const JobSummary& summary);

// 80 -> "1m20s", 3600 -> "1h0m", 90000 -> "1d1h".
std::string FormatShortDuration(double seconds);

}  // namespace lambdadnn
