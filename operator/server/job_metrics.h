// SPDX-License-Identifier: Apache-2.0
// Metrics of jobs, from the cached objects: the series of a job end with it. Of each job the values
// are kept, and only what has changed since the last scrape is read again. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "operator/kube/object_cache.h"

namespace lambdadnn {

class JobMetrics {
 public:
  // Prometheus text of all jobs: how many in which phase; of each its plan, prediction, progress,
  // slices, cost and store requests.
  std::string Text(const ObjectCache& jobs);

  static constexpr size_t kSeries = 17;  // of one job at most

 private:
  struct Row {
    std::string labels;
    std::string phase;
    std::array<std::optional<double>, kSeries> values;
  };

  void Update(const ObjectCache& jobs);
  static Row ReadRow(const ObjectName& name, const Json& object);

  std::mutex mutex_;
  std::map<ObjectName, Row> rows_;
  uint64_t seen_ = 0;  // of the cache's changes
};

}  // namespace lambdadnn
