// SPDX-License-Identifier: Apache-2.0
// A job's life as one OpenTelemetry trace (docs/design/021-traces.md), made from its object and its
// history, as the report is. The trace id is the job's uid, and span ids follow from what a span is
// about: whichever process sends one, and however often, it is the same span.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "common/tracing/span.h"
#include "operator/controller/apply/pass.h"
#include "operator/controller/observe/job_history.h"

namespace lambdadnn {

// All spans that have ended. `pods`: the functions are pods; `deleted`: when the job was, before
// its end. Pure.
std::vector<Span> JobTrace(const Job& job, const JobHistory& history, bool pods,
                           std::optional<WallTime> deleted);

// Hands over those that this process has not yet. A job that ended minutes before this process saw
// it first has none: an earlier one has sent them.
void TraceJob(Pass* pass, const std::function<void(std::vector<Span>)>& export_spans);

}  // namespace lambdadnn
