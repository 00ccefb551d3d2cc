// SPDX-License-Identifier: Apache-2.0
// Turns the files and options of `lambdadnn plan` and `predict` into the planner's input.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/api/job.h"
#include "operator/cluster_view/cluster_limits.h"
#include "operator/planner/planner.h"

namespace lambdadnn {

struct PlanArguments {
  std::string job_file;                // "-" = standard input
  std::string platform_file;           // empty = this machine
  std::string prices_file = "";        // in place of the platform's prices; empty = those
  WallTime now{};                      // by which price books and times of the job are judged
  std::vector<std::string> overrides;  // PATH=VALUE
  std::optional<int> functions;
  std::optional<int> memory_mib;
  std::string model = "extended";  // names of operator/planner/models.h
  std::string search = "exact";    // and of searches.h
  // A platform that was read elsewhere, and where (for messages); used without platform_file.
  std::string platform_text = "";
  std::string platform_name = "";
  // Asked for the profile of a job that has none in its file.
  std::function<std::optional<WorkloadProfile>(const Job& job)> find_profile = nullptr;
  // Asked what the cluster allows the job; the platform is narrowed to that.
  std::function<Result<ClusterLimits>(const Job& job)> find_limits = nullptr;
};

struct PlanRequest {
  std::string name;  // of the job
  PlannerInput input;
  // What the cluster narrows, and what of it could not be read, for people.
  std::vector<std::string> narrowed;
  std::vector<std::string> unknown;
  // Why functions will not connect to each other; empty = they may.
  std::string unconnected;
  // Why nothing fits into the cluster now; empty = something may.
  std::string obstacle;
};

// A platform file's text; `name` for messages. Refused where its prices do not count `now`.
Result<Platform> ReadPlatformText(const std::string& text, const std::string& name, WallTime now);

// Functions and memory together fix the plan; one of them alone narrows the search. Errors name
// the file, the field and the next step.
Result<PlanRequest> LoadPlanRequest(const PlanArguments& arguments);

}  // namespace lambdadnn
