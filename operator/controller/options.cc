// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/options.h"

namespace lambdadnn {
namespace {

Status NeedsPositive(const char* name, double value) {
  if (value > 0) return OkStatus();
  return InvalidArgumentError(std::string("controller option ") + name + " must be above 0");
}

}  // namespace

Status ControllerOptions::Validate() const {
  if (workers < 1) return InvalidArgumentError("controller option workers must be at least 1");
  if (leader_epoch < 1) {
    return InvalidArgumentError("controller option leader_epoch must be at least 1");
  }
  LDNN_RETURN_IF_ERROR(NeedsPositive("tick_seconds", tick_seconds));
  LDNN_RETURN_IF_ERROR(NeedsPositive("starting_tick_seconds", starting_tick_seconds));
  LDNN_RETURN_IF_ERROR(NeedsPositive("idle_tick_seconds", idle_tick_seconds));
  LDNN_RETURN_IF_ERROR(NeedsPositive("finished_tick_seconds", finished_tick_seconds));
  LDNN_RETURN_IF_ERROR(NeedsPositive("retry_seconds", retry_seconds));
  LDNN_RETURN_IF_ERROR(NeedsPositive("ready_timeout_seconds", ready_timeout_seconds));
  LDNN_RETURN_IF_ERROR(NeedsPositive("silence_seconds", silence_seconds));
  LDNN_RETURN_IF_ERROR(NeedsPositive("cleanup_seconds", cleanup_seconds));
  LDNN_RETURN_IF_ERROR(NeedsPositive("progress_seconds", progress_seconds));
  LDNN_RETURN_IF_ERROR(
      NeedsPositive("max_progress_writes_per_second", max_progress_writes_per_second));
  if (max_retry_seconds < retry_seconds) {
    return InvalidArgumentError(
        "controller option max_retry_seconds must be at least retry_seconds");
  }
  if (timeout_margin_share < 0 || timeout_margin_share >= 1) {
    return InvalidArgumentError("controller option timeout_margin_share must be in [0, 1)");
  }
  return OkStatus();
}

bool IsOurs(const Job& job, const ControllerOptions& options) {
  return job.spec.managed_by.empty() || job.spec.managed_by == options.controller_name;
}

}  // namespace lambdadnn
