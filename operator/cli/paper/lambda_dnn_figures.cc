// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "operator/cli/paper/paper_figures.h"
#include "operator/planner/planner.h"
#include "operator/planner/published_workloads.h"

namespace lambdadnn {
namespace {

PlannerInput Within(PlannerInput input, double deadline_seconds, SearchMethod search) {
  input.objective.deadline_seconds = deadline_seconds;
  input.options.search = search;
  input.options.explain = false;
  return input;
}

double CostOf(const PlannerInput& input) {
  const auto outcome = MakePlan(input);
  return outcome.ok() && outcome->feasible ? outcome->chosen.predicted.cost : 0;
}

// The slowest search of the three workloads, each for twice its fastest time.
double SlowestSearchMs(Clock& clock, int max_mib) {
  constexpr double kMsPerSecond = 1e3;
  constexpr double kAny = 1e-3;  // no plan is as fast
  double slowest = 0;
  for (PlannerInput input : {OneDCnn(10), MobileNet(5), ResNet50(2)}) {
    input.platform.memory.max_mib = max_mib;
    const auto fastest = MakePlan(Within(input, kAny, SearchMethod::kExact));
    if (!fastest.ok()) continue;
    const double deadline = 2 * fastest->certificate.fastest_seconds;
    const PlannerInput timed = Within(std::move(input), deadline, SearchMethod::kExact);
    const Instant begin = clock.Now();
    const auto outcome = MakePlan(timed);
    if (outcome.ok()) slowest = std::max(slowest, ToSeconds(clock.Now() - begin) * kMsPerSecond);
  }
  return slowest;
}

std::string Text(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void AddSearchTimes(Clock& clock, std::vector<PaperFigure>* figures) {
  const std::string group = "Duration of the search";
  figures->push_back({group, "sizes up to 3,008 MB", "0.61 to 1.38 ms",
                      Text("%.2f ms", SlowestSearchMs(clock, 3008))});
  figures->push_back({group, "sizes up to 10,240 MB", "at most 5.27 ms",
                      Text("%.2f ms", SlowestSearchMs(clock, 10'240)), std::nullopt,
                      "Another machine, and a search that leaves out by bounds what Algorithm 1 "
                      "does not look at."});
}

// Worked out by hand (docs/theory.md, section 1).
void AddReadings(std::vector<PaperFigure>* figures) {
  struct Row {
    double deadline_seconds;
    double first;
    double not_dearer;
  };
  const std::string group = "1DCNN, 5 epochs, by its equations";
  constexpr double kExact = .01682;
  double least_saved = 1;
  double most_saved = 0;
  for (const Row& row :
       {Row{90, .01738, .01692}, Row{150, .01861, .01733}, Row{210, .01975, .01764}}) {
    const auto cost = [&](SearchMethod search) {
      return CostOf(Within(OneDCnn(5), row.deadline_seconds, search));
    };
    const std::string deadline = Text("%.0f s", row.deadline_seconds);
    const double first = cost(SearchMethod::kAlgorithm1First);
    const double not_dearer = cost(SearchMethod::kAlgorithm1);
    const double exact = cost(SearchMethod::kExact);
    figures->push_back(
        NumberFigure(group, deadline + ", algorithm1-first", row.first, first, "$%.5f"));
    figures->push_back(
        NumberFigure(group, deadline + ", algorithm1", row.not_dearer, not_dearer, "$%.5f"));
    figures->push_back(NumberFigure(group, deadline + ", exact", kExact, exact, "$%.5f"));
    const double saved = 1 - exact / std::min(first, not_dearer);
    least_saved = std::min(least_saved, saved);
    most_saved = std::max(most_saved, saved);
  }
  figures->push_back({group, "exact below the cheaper reading", "",
                      Text("%.1f", 100 * least_saved) + Text(" to %.1f %%", 100 * most_saved),
                      std::nullopt,
                      "The inner loop of Algorithm 1 can be read in two ways; the exact search "
                      "looks at every n."});
}

}  // namespace

std::vector<PaperFigure> LambdaDnnFigures(Clock& clock) {
  std::vector<PaperFigure> figures;
  AddReadings(&figures);
  AddSearchTimes(clock, &figures);
  const std::string errors = "Error of the predicted time";
  figures.push_back({errors, "over sizes of memory", "0.98 to 6.0 %", ""});
  figures.push_back({errors, "over numbers of functions", "0.20 to 10.27 %", "", std::nullopt,
                     "Measured on AWS Lambda; scripts/bench.sh measures the errors of runs of "
                     "this product (docs/benchmarks.md)."});
  figures.push_back({"Cost below a modified Siren", "up to, by workload", "57.9 %, 66.7 %", "",
                     std::nullopt,
                     "Siren's policy was trained and is not published, nor are its plans, so "
                     "there is nothing to compute it from."});
  figures.push_back({"Jobs of a trace that were on time", "of 117,325", "99.98 %", "", std::nullopt,
                     "The jobs that were drawn from the trace are not published."});
  figures.push_back({"Relaunch at the time limit", "each", "about 6 s", "", std::nullopt,
                     "Here it is measured with the profile, as sliceOverheadSeconds."});
  return figures;
}

}  // namespace lambdadnn
