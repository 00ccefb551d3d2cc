// SPDX-License-Identifier: Apache-2.0
// What a controller counts, under the names that dashboards for controller-runtime know
// (controller_runtime_*, workqueue_*).
#pragma once

#include <string>

#include "common/base/clock.h"
#include "common/telemetry/metrics.h"

namespace lambdadnn {

class ControllerMetrics {
 public:
  // `registry` outlives it.
  ControllerMetrics(MetricsRegistry& registry, const std::string& controller, int workers);

  void Added() { adds_.Add(); }
  void Retried() { retries_.Add(); }
  void Taken(Duration waited) { queue_seconds_.Observe(ToSeconds(waited)); }
  void Begun() { active_.Add(1); }
  // A pass ended: it went well, or it is repeated with back-off.
  void Ended(bool ok, Duration took);
  // Gauges.
  void SetQueue(size_t depth, Duration unfinished, Duration longest);

 private:
  Counter& success_;
  Counter& error_;
  Counter& errors_;
  Histogram& seconds_;
  Gauge& active_;
  Counter& adds_;
  Counter& retries_;
  Histogram& queue_seconds_;
  Histogram& work_seconds_;
  Gauge& depth_;
  Gauge& unfinished_;
  Gauge& longest_;
};

}  // namespace lambdadnn
