// SPDX-License-Identifier: Apache-2.0
// The outcome of planning as JSON, the shape that `lambdadnn plan -o json` promises
// (docs/formats.md).
#pragma once

#include "common/json/json_reader.h"
#include "operator/planner/planner.h"

namespace lambdadnn {

Json CandidateToJson(const PlanCandidate& candidate);
// `search_seconds`: how long planning took.
Json OutcomeToJson(const PlanningOutcome& outcome, double search_seconds);

}  // namespace lambdadnn
