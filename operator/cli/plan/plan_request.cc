// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/plan/plan_request.h"

#include "common/base/files.h"
#include "common/base/text.h"
#include "operator/api/job_codec.h"
#include "operator/api/platform_codec.h"
#include "operator/controller/planning.h"

namespace lambdadnn {
namespace {

Result<Json> ReadDocument(const std::string& path) {
  const std::string name = path == "-" ? "standard input" : path;
  const auto text = ReadFile(path == "-" ? "/dev/stdin" : path);
  if (!text.ok()) return InvalidArgumentError(text.status().message());
  auto document = ParseJson(*text);
  if (!document.ok()) return document.status().WithContext(name);
  return document;
}

// spec.training.epochs=3: the value is YAML.
Status Override(const std::string& assignment, Json* document) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    return InvalidArgumentError("--set " + assignment +
                                " must be PATH=VALUE, e.g. --set spec.training.epochs=3");
  }
  LDNN_ASSIGN_OR_RETURN(Json value, ParseJson(assignment.substr(equals + 1)));
  Json* at = document;
  for (const std::string& field : Split(assignment.substr(0, equals), '.')) {
    if (!at->is_object() && !at->is_null()) {
      return InvalidArgumentError("--set " + assignment + ": there is no map of fields at " +
                                  field);
    }
    at = &(*at)[field];
  }
  *at = std::move(value);
  return OkStatus();
}

Result<Job> LoadJob(const PlanArguments& arguments) {
  LDNN_ASSIGN_OR_RETURN(Json document, ReadDocument(arguments.job_file));
  for (const std::string& assignment : arguments.overrides) {
    LDNN_RETURN_IF_ERROR(Override(assignment, &document));
  }
  auto job = DecodeJob(document);
  if (!job.ok()) return job.status().WithContext(arguments.job_file);
  return job;
}

Result<Platform> LoadPlatform(const std::string& path) {
  if (path.empty()) {
    return InvalidArgumentError("plan needs --platform FILE; see examples/platforms");
  }
  LDNN_ASSIGN_OR_RETURN(const Json document, ReadDocument(path));
  auto platform = PlatformFromJson(document);
  if (!platform.ok()) return platform.status().WithContext(path);
  return platform;
}

void Narrow(const PlanArguments& arguments, PlannerInput* input) {
  if (arguments.functions && arguments.memory_mib) {
    input->objective = Objective{};
    input->objective.fixed = Objective::Fixed{*arguments.functions, *arguments.memory_mib};
    return;
  }
  if (arguments.functions) {
    input->limits.min_functions = *arguments.functions;
    input->limits.max_functions = *arguments.functions;
  }
  if (arguments.memory_mib) {
    input->limits.min_memory_mib = *arguments.memory_mib;
    input->limits.max_memory_mib = *arguments.memory_mib;
  }
}

}  // namespace

Result<PlanRequest> LoadPlanRequest(const PlanArguments& arguments) {
  LDNN_ASSIGN_OR_RETURN(Job job, LoadJob(arguments));
  LDNN_ASSIGN_OR_RETURN(const Platform platform, LoadPlatform(arguments.platform_file));
  if (!job.spec.profile) {
    return InvalidArgumentError(arguments.job_file +
                                ": spec.profile is missing, so time and cost cannot be predicted; "
                                "measure it with lambdadnn profile -f " +
                                arguments.job_file + ", or add it");
  }
  job.status.profile = job.spec.profile;
  PlanRequest request;
  request.name = job.metadata.name.empty() ? "job" : job.metadata.name;
  request.input = PlannerInputOf(job, platform, 0, 0, true);
  request.input.options.model =
      arguments.model == "lambdadnn" ? PredictionModel::kLambdaDnn : PredictionModel::kExtended;
  request.input.options.search =
      arguments.search == "algorithm1" ? SearchMethod::kAlgorithm1 : SearchMethod::kExact;
  Narrow(arguments, &request.input);
  return request;
}

}  // namespace lambdadnn
