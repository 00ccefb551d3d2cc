// SPDX-License-Identifier: Apache-2.0
// The JSON form of a plan: one form for status.plan, slice requests, `lambdadnn plan` and
// report.json (docs/formats.md). Every field is written; decoding is strict (unknown fields are
// errors, since one could change arithmetic), defaults absent fields as plan.h does, and checks
// Plan::Validate(). Encoding and decoding gives an equal plan, doubles included.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/json/json_reader.h"
#include "common/plan/plan.h"

namespace lambdadnn {

// "ObjectStore", "Direct"; "Dedicated", "Workers".
std::string_view TransportName(TransportKind transport);
std::string_view PlacementName(Placement placement);

Json PlanToJson(const Plan& plan);
Json AggregationToJson(const AggregationPlan& aggregation);
Json PredictionToJson(const Prediction& predicted);

// kInvalidArgument with every problem and its field path.
Result<Plan> PlanFromJson(const Json& json);
// The same for a plan nested at `path`; problems are appended to `errors`.
Plan DecodePlan(const Json& json, const std::string& path, std::vector<FieldError>* errors);

}  // namespace lambdadnn
