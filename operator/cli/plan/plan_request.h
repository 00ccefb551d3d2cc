// SPDX-License-Identifier: Apache-2.0
// From the files and options of `lambdadnn plan` and `predict` to what the planner is asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/planner/planner.h"

namespace lambdadnn {

struct PlanArguments {
  std::string job_file;                // "-" = standard input
  std::string platform_file;           // empty = this machine
  std::vector<std::string> overrides;  // PATH=VALUE
  std::optional<int> functions;
  std::optional<int> memory_mib;
  std::string model = "extended";
  std::string search = "exact";
};

struct PlanRequest {
  std::string name;  // of the job
  PlannerInput input;
};

// Functions and memory together fix the plan; one of them alone narrows the search. Errors name
// the file, the field and the next step.
Result<PlanRequest> LoadPlanRequest(const PlanArguments& arguments);

}  // namespace lambdadnn
