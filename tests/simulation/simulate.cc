// SPDX-License-Identifier: Apache-2.0
// simulate: runs worlds of the deterministic simulator and says how to replay one that fails.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>

#include "common/base/files.h"
#include "common/base/random.h"
#include "common/base/text.h"
#include "common/telemetry/log.h"
#include "tests/simulation/bugs.h"
#include "tests/simulation/campaign.h"
#include "tests/simulation/invariant.h"
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
  bool expect_failure = false;
  std::string record;
};

int RunOne(uint64_t seed, bool trace) {
  TraceDigest digest;
  WorldOptions options;
  options.trace = [&digest, trace](const std::string& line) {
    digest.Add(line);
    if (trace) std::puts(line.c_str());
  };
  const WorldResult result = RunWorld(seed, options);
  std::printf("seed %llu: %s\n  %s\n", static_cast<unsigned long long>(seed),
              result.Brief().c_str(), result.scenario.c_str());
  std::printf(
      "  %.1f virtual s, %lld events, %lld store requests, %lld renewed slices, %lld checkpoints, "
      "%lld plan revisions, %lld incarnations, %lld controllers, %lld faults, model %s\n",
      result.virtual_seconds, static_cast<long long>(result.events),
      static_cast<long long>(result.store_requests), static_cast<long long>(result.slices),
      static_cast<long long>(result.checkpoints), static_cast<long long>(result.plan_revisions),
      static_cast<long long>(result.incarnations), static_cast<long long>(result.controllers),
      static_cast<long long>(result.faults.TotalFaults()), result.model_digest.c_str());
  std::printf("  trace: %s\n", digest.Brief().c_str());
  return result.ok() ? 0 : 1;
}

void PrintFailure(const SeedFailure& failure, const std::string& bug) {
  std::printf(
      "FAILED seed %llu: %s: %s\n  replay: build/release/bin/simulate --seed %llu --trace%s\n",
      static_cast<unsigned long long>(failure.seed), NameOf(failure.invariant).c_str(),
      failure.message.c_str(), static_cast<unsigned long long>(failure.seed),
      bug.empty() ? "" : (" --bug " + bug).c_str());
}

void PrintCampaign(const CampaignResult& result) {
  std::printf("%s", result.faults.Report().c_str());
  std::printf(
      "%llu seeds in %.1f s: %.0f seeds a minute; medians a seed: %lld faults, %lld renewed "
      "slices, %lld incarnations, %lld iterations of counted cost\n",
      static_cast<unsigned long long>(result.seeds), result.seconds, result.SeedsPerMinute(),
      static_cast<long long>(Median(result.faults_per_seed)),
      static_cast<long long>(Median(result.slices_per_seed)),
      static_cast<long long>(Median(result.incarnations_per_seed)),
      static_cast<long long>(Median(result.counted_iterations_per_seed)));
}

int RunMany(const Arguments& arguments, const CampaignOptions& options) {
  const CampaignResult result = RunCampaign(options);
  PrintCampaign(result);
  std::map<Invariant, int> broken;
  for (const SeedFailure& failure : result.failures) {
    ++broken[failure.invariant];
    PrintFailure(failure, arguments.bug);
  }
  for (const auto& [invariant, seeds] : broken) {
    std::printf("%-17s broken by %d seeds\n", NameOf(invariant).c_str(), seeds);
  }
  std::printf("%llu passed, %zu failed\n",
              static_cast<unsigned long long>(result.seeds - result.failures.size()),
              result.failures.size());
  return result.failures.empty() ? 0 : 1;
}

// 0 when the defect is found.
int ExpectFailure(const BugInfo& bug, const CampaignOptions& options) {
  const BugSearch search = SearchBug(bug, options, 1);
  PrintCampaign(search.campaign);
  for (const SeedFailure& failure : search.found) PrintFailure(failure, bug.name);
  for (const SeedFailure& failure : search.without) PrintFailure(failure, "");
  std::printf("%s: %s; %zu seeds failed by other invariants than its own\n", bug.name,
              search.found.empty() ? "NOT FOUND" : "found", search.others.size());
  return search.found.empty() ? 1 : 0;
}

// Seeds in the record for each defect.
constexpr size_t kRecordedSeeds = 3;

// Looks for every defect, or `only`; exit code 1 when one is not found.
int Record(const std::string& path, const std::string& only, const CampaignOptions& options) {
  std::map<std::string, std::vector<uint64_t>> record;
  if (auto known = ReadRecordedSeeds(path); known.ok()) record = *std::move(known);
  int missing = 0;
  for (const BugInfo& bug : AllBugs()) {
    if (!only.empty() && only != bug.name) continue;
    const BugSearch search = SearchBug(bug, options, kRecordedSeeds);
    std::vector<uint64_t>& seeds = record[bug.name];
    seeds.clear();
    for (const SeedFailure& failure : search.found) seeds.push_back(failure.seed);
    missing += seeds.empty() ? 1 : 0;
    std::printf("%-30s %s\n", bug.name,
                seeds.empty()
                    ? "NOT FOUND"
                    : (NameOf(search.found.front().invariant) + ": " + search.found.front().message)
                          .c_str());
    std::fflush(stdout);
  }
  std::string text =
      "# Planted defects and seeds that find them: written by simulate --record, replayed by\n"
      "# simulation_test.\n";
  for (const auto& [name, seeds] : record) {
    text += name;
    for (const uint64_t seed : seeds) text += " " + std::to_string(seed);
    text += "\n";
  }
  const Status written = WriteFileAtomically(path, text);
  if (!written.ok()) std::fprintf(stderr, "error: %s\n", written.ToString().c_str());
  return missing == 0 && written.ok() ? 0 : 1;
}

// "12..90" or "12"; false when it is neither.
bool ParseSeeds(const std::string& text, CampaignOptions* options) {
  const size_t dots = text.find("..");
  const auto first = ParseInteger(text.substr(0, dots));
  const auto last = dots == std::string::npos ? first : ParseInteger(text.substr(dots + 2));
  if (!first.has_value() || !last.has_value() || *first < 0 || *last < *first) {
    std::fprintf(stderr, "error: --seeds %s: not a range; write FIRST..LAST, or --minutes M\n",
                 text.c_str());
    return false;
  }
  options->first_seed = static_cast<uint64_t>(*first);
  options->last_seed = static_cast<uint64_t>(*last);
  return true;
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
  app.add_flag(
      "--expect-failure", arguments.expect_failure,
      "With --bug: exit code 0 when a seed breaks an invariant that the defect is to be found "
      "by and passes without it, at which it ends");
  app.add_option("--record", arguments.record,
                 "Find every planted defect (or the one of --bug) within --seeds and write the "
                 "seeds into this file");
  CLI11_PARSE(app, argc, argv);
  // Controllers complain about every fault, as they should.
  SetLogLevel(arguments.trace ? LogLevel::kWarning : LogLevel::kError);

  if (arguments.list_bugs) {
    for (const BugInfo& bug : AllBugs()) std::printf("%s\n", bug.name);
    return 0;
  }
  const BugInfo* const bug = FindBug(arguments.bug);
  if (bug == nullptr && !arguments.bug.empty()) {
    std::fprintf(stderr, "error: --bug %s: no such defect; --list-bugs prints them\n",
                 arguments.bug.c_str());
    return 2;
  }
  if (bug == nullptr && arguments.expect_failure) {
    std::fprintf(stderr, "error: --expect-failure: of which defect? Add --bug NAME\n");
    return 2;
  }
  if (bug != nullptr && arguments.record.empty() && !arguments.expect_failure) {
    planted_bug = bug->bug;
  }
  if (arguments.seed.has_value()) return RunOne(*arguments.seed, arguments.trace);

  CampaignOptions options;
  if (arguments.stop_at_failure) {
    options.enough = [](const CampaignResult& result) { return !result.failures.empty(); };
    options.seeds_per_child = 10;
  }
  if (arguments.minutes > 0) {
    SystemRandom random;
    options.first_seed = (random.Next() >> 24) + 1'000'000;
    options.last_seed = options.first_seed + 100'000'000;
    options.limit_seconds = arguments.minutes * 60;
    std::printf("fresh seeds from %llu on\n", static_cast<unsigned long long>(options.first_seed));
  } else if (!ParseSeeds(arguments.seeds, &options)) {
    return 2;
  }
  if (!arguments.record.empty()) return Record(arguments.record, arguments.bug, options);
  if (arguments.expect_failure) return ExpectFailure(*bug, options);
  return RunMany(arguments, options);
}

}  // namespace
}  // namespace lambdadnn::simulation

int main(int argc, char** argv) { return lambdadnn::simulation::Main(argc, argv); }
