// SPDX-License-Identifier: Apache-2.0
// simulate: runs worlds of the deterministic simulator and says how to replay one that fails.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "common/base/random.h"
#include "common/base/text.h"
#include "common/telemetry/log.h"
#include "tests/simulation/bugs.h"
#include "tests/simulation/campaign.h"
#include "tests/simulation/world.h"

namespace lambdadnn::simulation {
namespace {

struct Arguments {
  std::string seeds;
  double minutes = 0;
  std::optional<uint64_t> seed;
  bool trace = false;
  std::string bug;
  bool list_bugs = false;
  bool stop_at_failure = false;
};

int RunOne(uint64_t seed, bool trace) {
  WorldOptions options;
  if (trace) options.trace = [](const std::string& line) { std::puts(line.c_str()); };
  const WorldResult result = RunWorld(seed, options);
  std::printf("seed %llu: %s\n  %s\n", static_cast<unsigned long long>(seed),
              result.status.ToString().c_str(), result.scenario.c_str());
  std::printf(
      "  %.1f virtual s, %lld events, %lld store requests, %lld slices, %lld checkpoints, "
      "%lld incarnations, %lld controllers, %lld faults, model %s\n",
      result.virtual_seconds, static_cast<long long>(result.events),
      static_cast<long long>(result.store_requests), static_cast<long long>(result.slices),
      static_cast<long long>(result.checkpoints), static_cast<long long>(result.incarnations),
      static_cast<long long>(result.controllers),
      static_cast<long long>(result.faults.TotalFaults()), result.model_digest.c_str());
  return result.status.ok() ? 0 : 1;
}

int RunMany(const Arguments& arguments, const CampaignOptions& options) {
  const CampaignResult result = RunCampaign(options);
  std::printf("%s", result.faults.Report().c_str());
  std::printf(
      "%llu seeds in %.1f s: %.0f seeds a minute; medians a seed: %lld faults, %lld slices, %lld "
      "incarnations\n",
      static_cast<unsigned long long>(result.seeds), result.seconds, result.SeedsPerMinute(),
      static_cast<long long>(Median(result.faults_per_seed)),
      static_cast<long long>(Median(result.slices_per_seed)),
      static_cast<long long>(Median(result.incarnations_per_seed)));
  const std::string bug = arguments.bug.empty() ? "" : " --bug " + arguments.bug;
  for (const SeedFailure& failure : result.failures) {
    std::printf(
        "FAILED seed %llu: %s\n  replay: build/release/bin/simulate --seed %llu --trace%s\n",
        static_cast<unsigned long long>(failure.seed), failure.message.c_str(),
        static_cast<unsigned long long>(failure.seed), bug.c_str());
  }
  std::printf("%llu passed, %zu failed\n",
              static_cast<unsigned long long>(result.seeds - result.failures.size()),
              result.failures.size());
  return result.failures.empty() ? 0 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Runs whole jobs on virtual time under faults drawn from a seed, and checks the "
      "product's guarantees all along.\nExample: simulate --seeds 1..2000");
  Arguments arguments;
  app.add_option("--seeds", arguments.seeds, "Range of seeds, FIRST..LAST");
  app.add_option("--minutes", arguments.minutes, "Fresh seeds for that many minutes");
  app.add_option("--seed", arguments.seed, "One seed in this process (for a debugger)");
  app.add_flag("--trace", arguments.trace, "With --seed: print every effect");
  app.add_option("--bug", arguments.bug, "Switch on a planted defect");
  app.add_flag("--list-bugs", arguments.list_bugs, "Print the planted defects");
  app.add_flag("--stop", arguments.stop_at_failure, "End at the first failing seed");
  CLI11_PARSE(app, argc, argv);
  // Controllers complain about every fault, as they should.
  SetLogLevel(arguments.trace ? LogLevel::kWarning : LogLevel::kError);

  if (arguments.list_bugs) {
    for (const BugInfo& bug : AllBugs()) std::printf("%s\n", bug.name);
    return 0;
  }
  if (!arguments.bug.empty() && !PlantBug(arguments.bug)) {
    std::fprintf(stderr, "error: --bug %s: no such defect; --list-bugs prints them\n",
                 arguments.bug.c_str());
    return 2;
  }
  if (arguments.seed.has_value()) return RunOne(*arguments.seed, arguments.trace);

  CampaignOptions options;
  options.stop_at_failure = arguments.stop_at_failure;
  if (options.stop_at_failure) options.seeds_per_child = 10;
  if (arguments.minutes > 0) {
    SystemRandom random;
    options.first_seed = (random.Next() >> 24) + 1'000'000;
    options.last_seed = options.first_seed + 100'000'000;
    options.limit_seconds = arguments.minutes * 60;
    std::printf("fresh seeds from %llu on\n", static_cast<unsigned long long>(options.first_seed));
  } else {
    const size_t dots = arguments.seeds.find("..");
    const auto first = ParseInteger(arguments.seeds.substr(0, dots));
    const auto last =
        dots == std::string::npos ? first : ParseInteger(arguments.seeds.substr(dots + 2));
    if (!first.has_value() || !last.has_value() || *first < 0 || *last < *first) {
      std::fprintf(stderr, "error: --seeds %s: not a range; write FIRST..LAST, or --minutes M\n",
                   arguments.seeds.c_str());
      return 2;
    }
    options.first_seed = static_cast<uint64_t>(*first);
    options.last_seed = static_cast<uint64_t>(*last);
  }
  return RunMany(arguments, options);
}

}  // namespace
}  // namespace lambdadnn::simulation

int main(int argc, char** argv) { return lambdadnn::simulation::Main(argc, argv); }
