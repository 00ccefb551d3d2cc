// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/loop/controller_metrics.h"

namespace lambdadnn {
namespace {

// Those of controller-runtime and client-go.
const std::vector<double>& PassBounds() {
  static const std::vector<double> bounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                             1,     2.5,  5,     10,   30,  60};
  return bounds;
}
const std::vector<double>& QueueBounds() {
  static const std::vector<double> bounds = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000};
  return bounds;
}

}  // namespace

ControllerMetrics::ControllerMetrics(MetricsRegistry& registry, const std::string& controller,
                                     int workers)
    : success_(registry.GetCounter("controller_runtime_reconcile_total", "Passes by their result.",
                                   {{"controller", controller}, {"result", "success"}})),
      error_(registry.GetCounter("controller_runtime_reconcile_total", "Passes by their result.",
                                 {{"controller", controller}, {"result", "error"}})),
      errors_(registry.GetCounter("controller_runtime_reconcile_errors_total",
                                  "Passes that are repeated with back-off.",
                                  {{"controller", controller}})),
      seconds_(registry.GetHistogram("controller_runtime_reconcile_time_seconds",
                                     "Duration of a pass.", PassBounds(),
                                     {{"controller", controller}})),
      active_(registry.GetGauge("controller_runtime_active_workers", "Passes under way.",
                                {{"controller", controller}})),
      adds_(registry.GetCounter("workqueue_adds_total", "Names added to the queue.",
                                {{"name", controller}})),
      retries_(registry.GetCounter("workqueue_retries_total",
                                   "Names that come again after a failure.",
                                   {{"name", controller}})),
      queue_seconds_(registry.GetHistogram("workqueue_queue_duration_seconds",
                                           "From a name's time to its pass.", QueueBounds(),
                                           {{"name", controller}})),
      work_seconds_(registry.GetHistogram("workqueue_work_duration_seconds",
                                          "How long names are worked on.", QueueBounds(),
                                          {{"name", controller}})),
      depth_(registry.GetGauge("workqueue_depth", "Names whose time has come.",
                               {{"name", controller}})),
      unfinished_(registry.GetGauge("workqueue_unfinished_work_seconds",
                                    "Sum of the ages of all passes under way.",
                                    {{"name", controller}})),
      longest_(registry.GetGauge("workqueue_longest_running_processor_seconds",
                                 "Age of the oldest pass under way.", {{"name", controller}})) {
  registry
      .GetGauge("controller_runtime_max_concurrent_reconciles", "Passes at once.",
                {{"controller", controller}})
      .Set(workers);
}

void ControllerMetrics::Ended(bool ok, Duration took) {
  (ok ? success_ : error_).Add();
  if (!ok) errors_.Add();
  seconds_.Observe(ToSeconds(took));
  work_seconds_.Observe(ToSeconds(took));
  active_.Add(-1);
}

void ControllerMetrics::SetQueue(size_t depth, Duration unfinished, Duration longest) {
  depth_.Set(static_cast<double>(depth));
  unfinished_.Set(ToSeconds(unfinished));
  longest_.Set(ToSeconds(longest));
}

}  // namespace lambdadnn
