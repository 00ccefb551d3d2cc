// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/event_objects.h"

#include "common/base/bytes.h"
#include "operator/kube/micro_time.h"

namespace lambdadnn {
namespace {

// events.k8s.io limits `note` to 1 kB.
constexpr size_t kMaxNoteBytes = 1000;

bool IsBad(const Condition& condition) {
  const bool is_true = condition.status == "True";
  if (condition.type == "Failed" || condition.type == "FailureTarget") return is_true;
  if (condition.type == "Degraded") return is_true;
  return condition.type == "Accepted" && !is_true;
}

}  // namespace

Json MakeEvent(const Job& job, const Condition& condition, WallTime wall) {
  const std::string content = job.metadata.uid + "|" + condition.type + "|" + condition.status +
                              "|" + condition.reason + "|" + condition.message + "|" +
                              FormatRfc3339(wall);
  return {{"apiVersion", "events.k8s.io/v1"},
          {"kind", "Event"},
          {"metadata",
           {{"name", job.metadata.name + "." + Hex64(Xxh3(AsBytes(content)))},
            {"namespace", job.metadata.namespace_name}}},
          {"eventTime", FormatMicroTime(wall)},
          {"reportingController", "lambdadnn.io/controller"},
          {"reportingInstance", "lambdadnn-operator"},
          {"action", condition.type},
          {"reason", condition.reason},
          {"type", IsBad(condition) ? "Warning" : "Normal"},
          {"regarding",
           {{"apiVersion", kApiVersion},
            {"kind", kJobKind},
            {"name", job.metadata.name},
            {"namespace", job.metadata.namespace_name},
            {"uid", job.metadata.uid}}},
          {"note", condition.message.substr(0, kMaxNoteBytes)}};
}

}  // namespace lambdadnn
