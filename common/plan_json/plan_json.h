// SPDX-License-Identifier: Apache-2.0
// The JSON form of a plan: one form for status.plan, slice requests, `lambdadnn plan` and
// report.json (docs/formats.md). Memory is a quantity ("1728Mi"), decimals are text. Every field is
// written, but for memory that is 0; decoding defaults absent fields as plan.h
// does and checks ExecutionPlan::Validate(). A plan to execute is decoded strictly: what a function
// does not know could change arithmetic. Of a whole plan unknown fields are ignored: a newer
// operator may have written it. Encoding and decoding gives an equal plan, doubles included.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/json/json_reader.h"
#include "common/plan/plan.h"

namespace lambdadnn {

Json PlanToJson(const Plan& plan);
// Without what the planner expects of it.
Json ExecutionPlanToJson(const ExecutionPlan& plan);
Json AggregationToJson(const AggregationPlan& aggregation);
Json PredictionToJson(const Prediction& predicted);

// kInvalidArgument with every problem and its field path.
Result<Plan> PlanFromJson(const Json& json);
// The same for a plan nested at `path`; problems are appended to `errors`.
ExecutionPlan DecodeExecutionPlan(const Json& json, const std::string& path,
                                  std::vector<FieldError>* errors);
Plan DecodePlan(const Json& json, const std::string& path, std::vector<FieldError>* errors);

}  // namespace lambdadnn
