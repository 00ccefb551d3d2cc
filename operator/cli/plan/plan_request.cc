// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/plan/plan_request.h"

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/json/yaml.h"
#include "operator/api/job_file.h"
#include "operator/api/peer_channel.h"
#include "operator/api/platform_codec.h"
#include "operator/api/price_book.h"
#include "operator/backends/local/local_platform.h"
#include "operator/cluster_view/knative_config.h"
#include "operator/controller/planning/planning.h"
#include "operator/planner/models.h"
#include "operator/planner/searches.h"

namespace lambdadnn {
namespace {

// The problems with their lines, each but the first after "error: ", as LoadJobFile does.
Status Describe(const std::vector<FieldError>& errors, const YamlDocument& document,
                const std::string& file) {
  std::vector<std::string> lines;
  for (const FieldError& error : errors) {
    const std::string place = file + ":" + std::to_string(document.LineOf(error.path)) + ": ";
    lines.push_back(place + (error.path.empty() ? "" : error.path + ": ") + error.message);
  }
  return InvalidArgumentError(Join(lines, "\nerror: "));
}

// A file that is not there is a mistake in the command, not in the environment.
Status FileError(const Status& status) {
  if (status.code() != StatusCode::kNotFound) return status;
  return InvalidArgumentError(status.message() + "; check the path");
}

// Without a platform file: what `lambdadnn run` would use, with typical figures for a folder of
// files as the store, which it measures.
Platform ThisMachine() {
  constexpr OptionalQuantity kStoreBytesPerSecond = {400e6, Origin::kDefault};
  constexpr OptionalQuantity kStoreRequestSeconds = {0.0005, Origin::kDefault};
  Platform platform = LocalPlatform(MeasureMachine());
  platform.store_bytes_per_second = kStoreBytesPerSecond;
  platform.store_request_seconds = kStoreRequestSeconds;
  platform.function_store_intercept = kStoreBytesPerSecond;
  platform.function_network_bytes_per_second = kStoreBytesPerSecond;
  platform.parameter_server_network_bytes_per_second = kStoreBytesPerSecond;
  return platform;
}

Result<YamlDocument> OneDocument(const std::string& text, const std::string& path,
                                 const char* what) {
  YamlParseResult parsed = ParseYaml(text);
  if (parsed.error) {
    return InvalidArgumentError(path + ":" + std::to_string(parsed.error->line) + ": column " +
                                std::to_string(parsed.error->column) + ": " +
                                parsed.error->message);
  }
  if (parsed.documents.size() != 1) {
    return InvalidArgumentError(path + ":1: must hold one YAML document, " + what);
  }
  return std::move(parsed.documents.front());
}

Result<Platform::Prices> LoadPriceBook(const std::string& path, WallTime now) {
  const auto text = ReadFile(path);
  if (!text.ok()) return FileError(text.status());
  LDNN_ASSIGN_OR_RETURN(const YamlDocument document,
                        OneDocument(*text, path, "the price book; see examples/prices"));
  std::vector<FieldError> errors;
  Platform::Prices prices = DecodePriceBook(document.value, "", &errors);
  if (const auto past = OutOfForce(prices, "", now)) errors.push_back(*past);
  if (!errors.empty()) return Describe(errors, document, path);
  return prices;
}

Result<Platform> LoadPlatform(const PlanArguments& arguments) {
  const std::string& path = arguments.platform_file;
  if (!path.empty()) {
    const auto text = ReadFile(path);
    if (!text.ok()) return FileError(text.status());
    return ReadPlatformText(*text, path, arguments.now);
  }
  if (arguments.platform_name.empty()) return ThisMachine();
  return ReadPlatformText(arguments.platform_text, arguments.platform_name, arguments.now);
}

void Narrow(const PlanArguments& arguments, PlannerInput* input) {
  if (arguments.functions && arguments.memory_mib) {
    input->objective = Objective{};
    input->objective.fixed = Objective::Fixed{*arguments.functions, *arguments.memory_mib};
    return;
  }
  if (arguments.functions) {
    input->limits.min_functions = *arguments.functions;
    input->limits.max_functions = arguments.functions;
  }
  if (arguments.memory_mib) {
    input->limits.min_memory_mib = arguments.memory_mib;
    input->limits.max_memory_mib = arguments.memory_mib;
  }
}

}  // namespace

Result<Platform> ReadPlatformText(const std::string& text, const std::string& path, WallTime now) {
  LDNN_ASSIGN_OR_RETURN(const YamlDocument document,
                        OneDocument(text, path, "the platform; see examples/platforms"));
  // Helm values carry the platform under that name.
  const bool wrapped = document.value.is_object() && document.value.contains("platform");
  const std::string root = wrapped ? "platform" : "";
  std::vector<FieldError> errors;
  const Platform platform =
      DecodePlatform(wrapped ? document.value["platform"] : document.value, root, &errors);
  const std::string prices = wrapped ? "platform.prices" : "prices";
  if (const auto past = OutOfForce(platform.prices, prices, now)) errors.push_back(*past);
  if (!errors.empty()) return Describe(errors, document, path);
  return platform;
}

Result<PlanRequest> LoadPlanRequest(const PlanArguments& arguments) {
  auto file = LoadJobFile(arguments.job_file, arguments.overrides);
  if (!file.ok()) return FileError(file.status());
  Job& job = file->job;
  PlanRequest request;
  LDNN_ASSIGN_OR_RETURN(Platform platform, LoadPlatform(arguments));
  if (!arguments.prices_file.empty()) {
    LDNN_ASSIGN_OR_RETURN(platform.prices, LoadPriceBook(arguments.prices_file, arguments.now));
  }
  if (arguments.find_limits) {
    LDNN_ASSIGN_OR_RETURN(const ClusterLimits limits, arguments.find_limits(job));
    NarrowedPlatform narrowed = WithinLimits(platform, limits, job.spec.functions.gpu);
    platform = narrowed.platform;
    request.narrowed = std::move(narrowed.narrowed);
    request.obstacle = std::move(narrowed.obstacle);
    if (!narrowed.remedy.empty()) request.obstacle += "; " + narrowed.remedy;
    request.unknown = limits.unknown;
    for (std::string& refused : RefusedFields(job.spec.pod_template, limits.disabled_features)) {
      request.unknown.push_back(std::move(refused));
    }
  }
  if (!job.spec.profile && arguments.find_profile) job.spec.profile = arguments.find_profile(job);
  if (!job.spec.profile) {
    return InvalidArgumentError(arguments.job_file +
                                ": spec.profile is missing, so time and cost cannot be predicted; "
                                "measure it with lambdadnn profile -f " +
                                arguments.job_file + ", or add it");
  }
  job.status.profile = job.spec.profile;
  request.unconnected = WhyUnconnected(job.spec);
  request.name = job.metadata.name.empty() ? "job" : job.metadata.name;
  // What is planned begins now, whatever job of this name there was.
  job.metadata.creation_timestamp.clear();
  if (const std::string past = FinishByInThePast(job, arguments.now); !past.empty()) {
    return InvalidArgumentError(arguments.job_file + ": " + past);
  }
  request.input = PlannerInputOf(job, platform, {.wall = arguments.now}, true);
  const ModelKind* model = FindModel(arguments.model);
  const SearchKind* search = FindSearch(arguments.search);
  if (model == nullptr) {
    return InvalidArgumentError("--model: no model is named " + arguments.model + "; give one of " +
                                ModelNames());
  }
  if (search == nullptr) {
    return InvalidArgumentError("--search: no search is named " + arguments.search +
                                "; give one of " + SearchNames());
  }
  request.input.options.model = model->model;
  if (model->model != PredictionModel::kExtended) {
    // What the job leaves open is the model's to choose; the operator's own is asked as by it.
    request.input.aggregation.transport = job.spec.aggregation.transport;
    request.input.aggregation.placement = job.spec.aggregation.placement;
  }
  request.input.options.search = search->method;
  Narrow(arguments, &request.input);
  return request;
}

}  // namespace lambdadnn
