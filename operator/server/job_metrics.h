// SPDX-License-Identifier: Apache-2.0
// Metrics of jobs, computed from the cached objects at each scrape: the series of a job end with
// it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/json/json_reader.h"

namespace lambdadnn {

// Prometheus text of all jobs: how many in which phase; of each its plan, prediction, progress,
// slices, cost and store requests.
std::string JobMetrics(const std::vector<std::shared_ptr<const Json>>& jobs);

}  // namespace lambdadnn
