// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/apply/event_objects.h"

namespace lambdadnn {
namespace {

bool IsBad(const Condition& condition) {
  const bool is_true = condition.status == "True";
  if (condition.type == "Failed" || condition.type == "FailureTarget") return is_true;
  if (condition.type == "Degraded") return is_true;
  return condition.type == "Accepted" && !is_true;
}

}  // namespace

EventDraft MakeEvent(const Job& job, const Condition& condition) {
  return {.regarding = {{"apiVersion", kApiVersion},
                        {"kind", kJobKind},
                        {"name", job.metadata.name},
                        {"namespace", job.metadata.namespace_name},
                        {"uid", job.metadata.uid}},
          .warning = IsBad(condition),
          .action = condition.type,
          .reason = condition.reason,
          .note = condition.message};
}

}  // namespace lambdadnn
