// SPDX-License-Identifier: Apache-2.0
// `lambdadnn plan` chooses functions, memory and aggregation for a job; `lambdadnn predict` says
// what given ones would take. Neither needs a cluster, a store or LibTorch.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "common/base/statistics.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "operator/api/backend_kind.h"
#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/cluster_platform.h"
#include "operator/cli/command.h"
#include "operator/cli/paper/paper_figures.h"
#include "operator/cli/plan/comparison.h"
#include "operator/cli/plan/outcome_json.h"
#include "operator/cli/plan/outcome_text.h"
#include "operator/cli/plan/plan_request.h"
#include "operator/cli/plan/yaml_text.h"
#include "operator/controller/options.h"
#include "operator/planner/assumptions.h"
#include "operator/planner/models.h"
#include "operator/planner/searches.h"
#include "operator/resources/knative_service.h"

namespace lambdadnn {
namespace {

struct PlanOptions {
  PlanArguments arguments;
  std::string output = "text";
  std::string deadlines;
  bool compare = false;
  std::string paper;
  bool of_cluster = false;
  ClusterFlags cluster;
};

constexpr size_t kTitleColumns = 76;

void PrintDocument(const Json& document, const std::string& output) {
  const std::string text = output == "yaml" ? FormatYaml(document) : DumpJson(document, 2) + "\n";
  std::fputs(text.c_str(), stdout);
}

std::string ObjectiveOf(const PlannerInput& input) {
  const Objective& objective = input.objective;
  std::vector<std::string> parts;
  if (objective.performance_cost_ratio) parts.push_back("best performance for its cost");
  if (objective.finish_by) {
    parts.push_back("done by " + FormatRfc3339(*objective.finish_by));
  } else if (objective.deadline_seconds) {
    parts.push_back("deadline " + ShowSeconds(*objective.deadline_seconds));
  }
  if (objective.confidence) {
    parts.push_back("confidence " + FormatDouble(*objective.confidence));
  }
  if (objective.budget) {
    parts.push_back("budget " + ShowMoney(*objective.budget, input.platform.prices.currency));
  }
  return parts.empty() ? "given functions and memory" : Join(parts, ", ");
}

std::string TitleOf(const char* verb, const PlanRequest& request, const std::string& objective) {
  std::string title = std::string(verb) + " for " + request.name;
  if (!objective.empty()) title += ": " + objective;
  const PlannerOptions& options = request.input.options;
  size_t column = title.size();
  for (const std::string_view part : {KindOf(options.model).title, KindOf(options.search).title}) {
    if (part.empty()) continue;
    const bool fits = column + part.size() <= kTitleColumns;
    title += (fits ? ", " : ",\n  ") + std::string(part);
    column = (fits ? column : 0) + part.size() + 2;
  }
  return title;
}

Result<std::vector<double>> ParseDeadlines(const std::string& text) {
  std::vector<double> deadlines;
  if (text.empty()) return deadlines;
  for (const std::string& part : Split(text, ',')) {
    const auto seconds = ParseDouble(Trim(part));
    if (!seconds || *seconds <= 0) {
      return InvalidArgumentError("--deadlines: " + part +
                                  " is not a positive number of seconds; write e.g. 60,120,300");
    }
    deadlines.push_back(*seconds);
  }
  return deadlines;
}

// The planner has no clock.
Result<PlanningOutcome> TimedPlan(const PlannerInput& input, Clock& clock, double* seconds) {
  const Instant begin = clock.Now();
  Result<PlanningOutcome> outcome = MakePlan(input);
  *seconds = ToSeconds(clock.Now() - begin);
  return outcome;
}

void PrintAssumptions(const PlanRequest& request) {
  const std::vector<Assumption> assumptions = AssumptionsOf(request.input);
  if (assumptions.empty()) return;
  std::printf("\n  assumed, since the profile or the platform does not say\n");
  for (const Assumption& assumption : assumptions) {
    std::printf("    %s\n      %s\n", assumption.field.c_str(), assumption.taken.c_str());
  }
}

Json WithAssumptions(Json plan, const PlanRequest& request) {
  Json assumed = Json::array();
  for (const Assumption& assumption : AssumptionsOf(request.input)) {
    assumed.push_back({{"field", assumption.field}, {"taken", assumption.taken}});
  }
  if (!assumed.empty()) plan["assumed"] = std::move(assumed);
  return plan;
}

// One plan a deadline; infeasible (exit code 3) only when every one of them is.
int PlanDeadlines(PlanRequest request, const std::vector<double>& deadlines,
                  const PlanOptions& options, Clock& clock) {
  std::vector<DeadlineOutcome> outcomes;
  bool feasible = false;
  const std::optional<double> confidence = request.input.objective.confidence;
  for (const double deadline : deadlines) {
    request.input.objective = Objective{};
    request.input.objective.confidence = confidence;
    request.input.objective.deadline_seconds = deadline;
    request.input.options.explain = false;
    double search_seconds = 0;
    auto outcome = TimedPlan(request.input, clock, &search_seconds);
    if (!outcome.ok()) return FailCommand(outcome.status());
    feasible = feasible || outcome->feasible;
    outcomes.push_back({deadline, *std::move(outcome), search_seconds});
  }
  if (options.output == "text") {
    std::fputs(FormatDeadlines(TitleOf("Plans", request, ""), outcomes).c_str(), stdout);
    PrintAssumptions(request);
  } else {
    Json plans = Json::array();
    for (const DeadlineOutcome& entry : outcomes) {
      Json plan = OutcomeToJson(entry.outcome, entry.search_seconds);
      plan["deadlineSeconds"] = entry.deadline_seconds;
      plan.erase("paretoFront");
      plan.erase("runnersUp");
      plans.push_back(std::move(plan));
    }
    PrintDocument(WithAssumptions({{"plans", std::move(plans)}}, request), options.output);
  }
  return feasible ? kExitComplete : kExitInfeasible;
}

int PrintPaper(const PlanOptions& options, Clock& clock) {
  const PaperKind* paper = FindPaper(options.paper);
  if (paper == nullptr) {
    return FailCommand(InvalidArgumentError("--paper: no paper is named " + options.paper +
                                            "; give one of " + PaperNames()));
  }
  const std::vector<PaperFigure> figures = paper->figures(clock);
  if (options.output == "text") {
    std::fputs(FormatFigures(*paper, figures).c_str(), stdout);
  } else {
    PrintDocument(FiguresToJson(*paper, figures), options.output);
  }
  return kExitComplete;
}

// What a plan takes at most with the confidence that deadlines have unless a job says another one.
double SecondsForDeadlines(const Prediction& predicted) {
  return predicted.SecondsAt(NormalQuantile(kDefaultConfidence));
}

// Which of the deadlines a prediction meets.
Json MeetsDeadlines(double seconds, const std::vector<double>& deadlines) {
  Json verdicts = Json::array();
  for (const double deadline : deadlines) {
    verdicts.push_back({{"deadlineSeconds", deadline}, {"met", seconds <= deadline}});
  }
  return verdicts;
}

void PrintVerdicts(double seconds, const std::vector<double>& deadlines) {
  for (const double deadline : deadlines) {
    std::printf("  deadline     %s: %s by %s\n", ShowSeconds(deadline).c_str(),
                seconds <= deadline ? "met" : "missed",
                ShowSeconds(std::abs(deadline - seconds)).c_str());
  }
}

// The platform and, where the file has none, the profile that the cluster knows.
Status AskCluster(PlanOptions* options, CommandContext& context) {
  PlanArguments& arguments = options->arguments;
  auto opened = OpenCluster(context.runtime, options->cluster);
  if (!opened.ok()) return opened.status();
  const auto cluster = std::make_shared<Cluster>(*std::move(opened));
  if (arguments.platform_file.empty()) {
    const auto platform = ReadClusterPlatform(*cluster->kube);
    if (!platform.ok()) return ExplainJobError(platform.status(), {}, cluster->server);
    arguments.platform_text = *platform;
    arguments.platform_name =
        std::string("ConfigMap ") + kPlatformNamespace + "/" + kPlatformConfigMap;
  }
  arguments.find_profile = [cluster](const Job& job) {
    return FindMeasuredProfile(*cluster->kube, {cluster->namespace_name, job.metadata.name}, job);
  };
  // Functions on the operator's machine have the limits of their host, which the platform states. A
  // job that leaves the backend to its operator may get one that the cluster limits.
  arguments.find_limits = [cluster, &context](const Job& job) -> Result<ClusterLimits> {
    const std::optional<BackendKind> backend = job.spec.backend;
    if (backend && !CapabilitiesOf(*backend).cluster_limits) return ClusterLimits{};
    return ReadFunctionLimits(*cluster->kube, context.runtime, cluster->namespace_name,
                              ReadOpenFaasPlace(*cluster->kube), job.spec.pod_template);
  };
  return OkStatus();
}

void PrintLimits(const PlanRequest& request) {
  for (const std::string& narrowed : request.narrowed) {
    std::printf("  cluster      %s\n", narrowed.c_str());
  }
  for (const std::string& unknown : request.unknown) {
    std::printf("  not counted  %s\n", unknown.c_str());
  }
  if (!request.unconnected.empty()) {
    std::printf("  connections  none between functions, which ask the store in vain instead: %s\n",
                request.unconnected.c_str());
  }
}

// What the plan rests on beside profile and platform.
Json WithLimits(Json plan, const PlanRequest& request) {
  plan = WithAssumptions(std::move(plan), request);
  if (!request.narrowed.empty() || !request.unknown.empty()) {
    plan["cluster"] = {{"narrowed", request.narrowed}, {"notCounted", request.unknown}};
  }
  if (!request.unconnected.empty()) plan["unconnected"] = request.unconnected;
  return plan;
}

void WarnOfProfile(const WorkloadProfile& profile) {
  if (profile.residual <= ControllerOptions().max_profile_residual) return;
  std::printf(
      "  warning: the profile's rates were up to %.0f %% off when it was fitted, and so may "
      "be this\n           plan; measure anew with `lambdadnn profile`\n",
      100 * profile.residual);
}

int PlanByEachSearch(const PlanRequest& request, const PlanOptions& options) {
  const auto comparison = CompareSearches(request.input);
  if (!comparison.ok()) {
    return FailCommand(comparison.status().WithContext(options.arguments.job_file));
  }
  if (options.output == "text") {
    const std::string title = TitleOf("Plans", request, ObjectiveOf(request.input));
    std::fputs(FormatComparison(title, *comparison).c_str(), stdout);
    PrintLimits(request);
    WarnOfProfile(request.input.profile);
    PrintAssumptions(request);
  } else {
    PrintDocument(WithLimits(ComparisonToJson(*comparison), request), options.output);
  }
  return comparison->feasible() ? kExitComplete : kExitInfeasible;
}

int RunPlan(PlanOptions options, bool predict, CommandContext& context) {
  if (!options.paper.empty()) return PrintPaper(options, context.runtime.clock);
  if (options.arguments.job_file.empty()) {
    return FailCommand(InvalidArgumentError("predict needs a job (-f FILE) or --paper NAME"));
  }
  const ClusterFlags& flags = options.cluster;
  if (options.of_cluster || context.kubectl_plugin || !flags.context.empty() ||
      !flags.kubeconfig.empty() || !flags.namespace_name.empty()) {
    const Status asked = AskCluster(&options, context);
    if (!asked.ok()) return FailCommand(asked);
  }
  options.arguments.now = context.runtime.clock.Wall();
  auto request = LoadPlanRequest(options.arguments);
  if (!request.ok()) return FailCommand(request.status());
  if (!request->obstacle.empty()) {
    std::fprintf(stderr, "error: no plan fits what the cluster allows now: %s\n",
                 request->obstacle.c_str());
    return kExitInfeasible;
  }
  const auto deadlines = ParseDeadlines(options.deadlines);
  if (!deadlines.ok()) return FailCommand(deadlines.status());
  if (options.compare) return PlanByEachSearch(*request, options);
  if (!predict && !deadlines->empty()) {
    return PlanDeadlines(*std::move(request), *deadlines, options, context.runtime.clock);
  }
  if (predict && !request->input.objective.fixed) {
    return FailCommand(InvalidArgumentError(
        "predict needs --functions N and --memory MIB, or spec.objective.fixed in the job"));
  }
  // A fixed plan leaves nothing to search, whatever --search is.
  if (predict) request->input.options.search = SearchMethod::kExact;
  double search_seconds = 0;
  const auto outcome = TimedPlan(request->input, context.runtime.clock, &search_seconds);
  if (!outcome.ok()) {
    std::string message = outcome.status().message();
    if (!request->narrowed.empty()) {
      message += "; the cluster allows no more: " + Join(request->narrowed, ", ");
    }
    return FailCommand(
        Status(outcome.status().code(), message).WithContext(options.arguments.job_file));
  }
  if (options.output == "text") {
    const std::string title =
        TitleOf(predict ? "Prediction" : "Plan", *request, ObjectiveOf(request->input));
    std::fputs(FormatOutcome(title, *outcome, search_seconds).c_str(), stdout);
    if (outcome->feasible)
      PrintVerdicts(SecondsForDeadlines(outcome->chosen.predicted), *deadlines);
    PrintLimits(*request);
    WarnOfProfile(request->input.profile);
    PrintAssumptions(*request);
  } else {
    Json document = WithLimits(OutcomeToJson(*outcome, search_seconds), *request);
    if (outcome->feasible && !deadlines->empty()) {
      document["deadlines"] =
          MeetsDeadlines(SecondsForDeadlines(outcome->chosen.predicted), *deadlines);
    }
    PrintDocument(document, options.output);
  }
  if (!outcome->feasible) return kExitInfeasible;
  // As for plans: infeasible when not one of the deadlines is met.
  const bool any = std::any_of(deadlines->begin(), deadlines->end(), [&](double deadline) {
    return SecondsForDeadlines(outcome->chosen.predicted) <= deadline;
  });
  return deadlines->empty() || any ? kExitComplete : kExitInfeasible;
}

CLI::App* AddCommon(CLI::App& app, const char* name, const char* description,
                    PlanOptions* options) {
  CLI::App* command = app.add_subcommand(name, description);
  PlanArguments& arguments = options->arguments;
  command->add_option("-f,--file", arguments.job_file, "Job (YAML or JSON); - = standard input")
      ->required();
  command->add_option(
      "--platform", arguments.platform_file,
      "Platform (YAML or JSON): sizes, limits, bandwidths, prices; this machine without it");
  command->add_option("--prices", arguments.prices_file,
                      "Price book (YAML or JSON) in place of the platform's; see examples/prices");
  command->add_flag("--cluster", options->of_cluster,
                    "Take the platform, and a profile measured before, from the cluster (as "
                    "kubectl lambdadnn does)");
  AddClusterFlags(command, &options->cluster);
  command->add_option("--functions", arguments.functions, "This number of functions")
      ->check(CLI::PositiveNumber);
  command->add_option("--memory", arguments.memory_mib, "This memory of a function, in MiB")
      ->check(CLI::PositiveNumber);
  command->add_option("--model", arguments.model, "One of " + ModelNames())->capture_default_str();
  command->add_option("--search", arguments.search, "One of " + SearchNames())
      ->capture_default_str();
  command->add_option("--set", arguments.overrides, "PATH=VALUE: override a field of the job");
  command->add_option("-o,--output", options->output, "text, json or yaml")
      ->check(CLI::IsMember({"text", "json", "yaml"}))
      ->capture_default_str();
  return command;
}

}  // namespace

void AddPlanCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command =
      AddCommon(app, "plan", "Choose functions, memory and aggregation for a job", options.get());
  CLI::Option* deadlines =
      command->add_option("--deadlines", options->deadlines,
                          "Plan for each of these deadlines (seconds, separated by commas)");
  command->add_flag("--compare", options->compare, "Plan by every search, beside the exact one")
      ->excludes(deadlines);
  command->footer(
      "Example: lambdadnn plan -f examples/profiles/1dcnn-imdb.yaml \\\n"
      "           --platform examples/platforms/lambda.yaml --deadlines 60,120,300\n"
      "         lambdadnn plan -f examples/profiles/1dcnn-imdb.yaml \\\n"
      "           --platform examples/platforms/lambda.yaml --model lambdadnn --compare\n"
      "         kubectl lambdadnn plan -f job.yaml");
  command->callback([options, &context] { context.exit_code = RunPlan(*options, false, context); });
}

void AddPredictCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = AddCommon(
      app, "predict", "Predict time and cost of given functions and memory", options.get());
  command->add_option("--deadlines", options->deadlines,
                      "Say which of these deadlines are met (seconds, separated by commas)");
  command->get_option("--file")->required(false);
  command->add_option("--paper", options->paper,
                      "The figures of a paper beside ours, without a job: " + PaperNames());
  command->footer(
      "Example: lambdadnn predict -f examples/profiles/1dcnn-imdb.yaml \\\n"
      "           --platform examples/platforms/lambda.yaml --functions 14 --memory 3008\n"
      "         lambdadnn predict --paper feng");
  command->callback([options, &context] { context.exit_code = RunPlan(*options, true, context); });
}

}  // namespace lambdadnn
