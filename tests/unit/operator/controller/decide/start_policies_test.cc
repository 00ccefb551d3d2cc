// SPDX-License-Identifier: Apache-2.0
// What happens while not all functions of a job are ready, and how long it backs off: one row a
// state.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "operator/controller/decide/await_functions.h"
#include "operator/controller/decide/start_back_off.h"
#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

constexpr const char* kGroup = "workers";

ControllerOptions StartOptions() {
  ControllerOptions options;
  options.start_retry_seconds = 1;
  options.max_start_retry_seconds = 60;
  options.ready_timeout_seconds = 300;
  options.max_start_failures = 3;
  return options;
}

TEST(StartBackOff, DoublesWithEachFailedStartUpToALimit) {
  const ControllerOptions options = StartOptions();
  EXPECT_EQ(StartBackOffSeconds(options, 0), 1);
  EXPECT_EQ(StartBackOffSeconds(options, 1), 2);
  EXPECT_EQ(StartBackOffSeconds(options, 5), 32);
  EXPECT_EQ(StartBackOffSeconds(options, 6), 60);
  EXPECT_EQ(StartBackOffSeconds(options, 1'000'000), 60);
}

TEST(StartBackOff, ChanceMakesItAQuarterLongerOrShorter) {
  EXPECT_EQ(WithStartJitter(8, 0), 6);
  EXPECT_EQ(WithStartJitter(8, 0.5), 8);
  EXPECT_EQ(WithStartJitter(8, 1), 10);
}

// What AwaitFunctions asks for: "ensure", "back off N", "release", "fail" or "wait".
std::string Asked(const std::vector<Action>& actions) {
  if (actions.empty()) return "wait";
  if (std::holds_alternative<EnsurePlannedGroups>(actions[0])) return "ensure";
  if (const auto* back = std::get_if<DeleteAllGroups>(&actions[0])) {
    return back->retry_seconds.has_value()
               ? "back off " + std::to_string(static_cast<int>(*back->retry_seconds))
               : "release";
  }
  const auto& write = std::get<WriteDecision>(actions[0]);
  return write.start_failed ? "wait in the queue" : "fail";
}

struct StartRow {
  const char* name;
  std::function<void(TestSnapshot&)> change;
  const char* asked;
};

// A live function that is not ready.
void AddPending(TestSnapshot& s) { s.observed.instances["f0"].instance.group = kGroup; }
void Asked(TestSnapshot& s, double seconds_ago) {
  s.remembered.start_since = s.now - FromSeconds(seconds_ago);
}
void AddCrashed(TestSnapshot& s, int count) {
  for (int i = 0; i < count; ++i) {
    InstanceFact& fact = s.observed.instances["crashed" + std::to_string(i)];
    fact.instance.group = kGroup;
    fact.instance.end = FunctionEnd::kByItself;
    fact.gone = s.now;
  }
}

const StartRow kStartRows[] = {
    {"not asked for", [](TestSnapshot&) {}, "ensure"},
    {"asked for, not there", [](TestSnapshot& s) { Asked(s, 1); }, "ensure"},
    {"there, not asked for by this process", [](TestSnapshot& s) { AddPending(s); }, "ensure"},
    {"starting",
     [](TestSnapshot& s) {
       AddPending(s);
       Asked(s, 300);
     },
     "wait"},
    {"starting for too long",
     [](TestSnapshot& s) {
       AddPending(s);
       Asked(s, 301);
     },
     "back off 1"},
    {"starting for too long, after two failed starts",
     [](TestSnapshot& s) {
       AddPending(s);
       Asked(s, 301);
       s.remembered.start_attempts = 2;
     },
     "back off 4"},
    {"refused for lack of capacity",
     [](TestSnapshot& s) {
       Asked(s, 1);
       s.remembered.start_error = ResourceExhaustedError("quota");
     },
     "back off 1"},
    {"refused for another reason",
     [](TestSnapshot& s) {
       Asked(s, 1);
       s.remembered.start_error = UnavailableError("platform");
     },
     "ensure"},
    {"refused for good",
     [](TestSnapshot& s) {
       Asked(s, 1);
       s.remembered.start_error = UnimplementedError("only public images");
     },
     "fail"},
    {"backing off, some not gone yet",
     [](TestSnapshot& s) {
       AddPending(s);
       s.remembered.start_again_at = s.now + FromSeconds(1);
     },
     "release"},
    {"backing off, none left",
     [](TestSnapshot& s) { s.remembered.start_again_at = s.now + FromSeconds(1); },
     "wait in the queue"},
    {"some crashed",
     [](TestSnapshot& s) {
       AddCrashed(s, 2);
       Asked(s, 1);
     },
     "ensure"},
    {"too many crashed", [](TestSnapshot& s) { AddCrashed(s, 3); }, "fail"},
};

TEST(AwaitFunctions, AsksForAllOrReleasesAll) {
  const ControllerOptions options = StartOptions();
  for (const StartRow& row : kStartRows) {
    TestSnapshot snapshot;
    snapshot.options = &options;
    snapshot.now = Instant(FromSeconds(1000));
    row.change(snapshot);
    const GroupNeed need{kGroup, 1};
    const FunctionStarts starts = ViewStarts(snapshot.observed, std::span(&need, 1));
    EXPECT_EQ(Asked(AwaitFunctions(snapshot, starts, EnsurePlannedGroups{})), row.asked)
        << row.name;
  }
}

}  // namespace
}  // namespace lambdadnn
