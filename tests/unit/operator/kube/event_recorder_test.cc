// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/event_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/in_memory_api_server.h"
#include "tests/simulation/sim_runtime.h"
#include "tests/simulation/sim_scheduler.h"
#include "tests/support/faulty_kube_client.h"

namespace lambdadnn {
namespace {

using simulation::SimProcess;
using simulation::SimScheduler;
using std::chrono::minutes;
using std::chrono::seconds;

class EventRecorderTest : public testing::Test {
 protected:
  EventRecorderTest() : process_(scheduler_.NewProcess("operator")), server_(process_.runtime()) {
    ResourceDefinition events = EventDefinition();
    events.time_to_live = Duration(0);
    server_.Define(std::move(events));
  }
  // Runs `body` with a recorder, in virtual time.
  void Run(EventRecorder::Options options, const std::function<void(EventRecorder&)>& body) {
    bool done = false;
    process_.Spawn("test", [&] {
      EventRecorder recorder(client_, process_.runtime(), std::move(options));
      body(recorder);
      done = true;
    });
    const Status ran = scheduler_.Run([&] { return done; }, {});
    EXPECT_TRUE(ran.ok()) << ran.ToString();
  }
  static EventDraft Draft(const std::string& reason, const std::string& note = "Something.") {
    return {.regarding = {{"kind", "ServerlessTrainingJob"},
                          {"name", "job"},
                          {"namespace", "team-a"},
                          {"uid", "u-1"}},
            .action = "Provision",
            .reason = reason,
            .note = note};
  }
  std::vector<Json> Events() { return server_.List(EventType(), "", "", 0, "").value().items; }
  void Sleep(Duration duration) { process_.runtime().clock.SleepFor(duration); }

  SimScheduler scheduler_{1};
  SimProcess& process_;
  InMemoryApiServer server_;
  std::function<Status(const std::string& call)> fault_ = [](const auto&) { return OkStatus(); };
  int calls_ = 0;
  FaultyKubeClient client_{server_, [this](const auto& call, const auto&, auto point) {
                             if (point == FaultyKubeClient::Point::kAfter) return OkStatus();
                             ++calls_;
                             return fault_(call);
                           }};
};

TEST_F(EventRecorderTest, AnEventTellsWhatHappened) {
  Run({}, [&](EventRecorder& recorder) {
    EventDraft draft = Draft("Infeasible");
    draft.warning = true;
    recorder.Record(draft);
    Sleep(seconds(1));
    ASSERT_EQ(Events().size(), 1u);
    const Json event = Events()[0];
    EXPECT_EQ(event["type"], "Warning");
    EXPECT_EQ(event["reason"], "Infeasible");
    EXPECT_EQ(event["action"], "Provision");
    EXPECT_EQ(event["note"], "Something.");
    EXPECT_EQ(event["metadata"]["namespace"], "team-a");
    EXPECT_EQ(event["regarding"]["uid"], "u-1");
    EXPECT_FALSE(event.contains("series"));
  });
}

TEST_F(EventRecorderTest, TheSameAgainIsASeries) {
  Run({}, [&](EventRecorder& recorder) {
    for (int i = 0; i < 5; ++i) {
      recorder.Record(Draft("Retry"));
      Sleep(minutes(1));
    }
    recorder.Record(Draft("Other"));
    Sleep(seconds(1));
    ASSERT_EQ(Events().size(), 2u);
    int64_t count = 0;
    for (const Json& event : Events()) {
      if (event["reason"] == "Retry") count = event["series"]["count"];
    }
    EXPECT_EQ(count, 5);
  });
}

TEST_F(EventRecorderTest, AfterSilenceItIsANewEvent) {
  Run({}, [&](EventRecorder& recorder) {
    recorder.Record(Draft("Retry"));
    Sleep(minutes(7));
    recorder.Record(Draft("Retry"));
    Sleep(seconds(1));
    EXPECT_EQ(Events().size(), 2u);
  });
}

TEST_F(EventRecorderTest, AnEventThatTheServerForgotIsMadeAnew) {
  Run({}, [&](EventRecorder& recorder) {
    recorder.Record(Draft("Retry"));
    Sleep(seconds(1));
    const std::string name = Events()[0]["metadata"]["name"];
    ASSERT_TRUE(server_.Delete(EventType(), {"team-a", name}, "").ok());
    recorder.Record(Draft("Retry"));
    Sleep(seconds(1));
    EXPECT_EQ(Events().size(), 1u);
  });
}

TEST_F(EventRecorderTest, ASilentServerDelaysNobody) {
  Run({.queue_limit = 10}, [&](EventRecorder& recorder) {
    fault_ = [&](const auto&) {
      Sleep(seconds(60));
      return UnavailableError("no answer");
    };
    const Instant begin = process_.runtime().clock.Now();
    for (int i = 0; i < 100; ++i) recorder.Record(Draft("R" + std::to_string(i)));
    EXPECT_EQ(process_.runtime().clock.Now(), begin);
    EXPECT_GE(recorder.dropped(), 89);
    fault_ = [](const auto&) { return OkStatus(); };
    Sleep(minutes(5));
    EXPECT_EQ(Events().size(), 100u - static_cast<size_t>(recorder.dropped()));
  });
}

TEST_F(EventRecorderTest, WhatCannotBeWrittenIsDroppedInTheEnd) {
  Run({}, [&](EventRecorder& recorder) {
    fault_ = [](const auto&) { return UnavailableError("away"); };
    recorder.Record(Draft("Lost"));
    Sleep(minutes(1));
    EXPECT_EQ(recorder.dropped(), 0);
    Sleep(minutes(2));
    EXPECT_EQ(recorder.dropped(), 1);
    EXPECT_EQ(calls_, 12);
    fault_ = [](const auto&) { return PermissionDeniedError("namespace is terminating"); };
    recorder.Record(Draft("Refused"));
    Sleep(seconds(1));
    EXPECT_EQ(recorder.dropped(), 2);
    EXPECT_EQ(calls_, 13) << "a refusal is not repeated";
  });
}

TEST_F(EventRecorderTest, ALostReplyMakesNoSecondEvent) {
  Run({}, [&](EventRecorder& recorder) {
    FaultyKubeClient after(server_, [this](const auto& call, const auto&, auto point) {
      const bool lost =
          call == "create" && point == FaultyKubeClient::Point::kAfter && calls_++ == 0;
      return lost ? UnavailableError("reply lost") : OkStatus();
    });
    EventRecorder second(after, process_.runtime(), {});
    second.Record(Draft("Once"));
    Sleep(minutes(1));
    EXPECT_EQ(Events().size(), 1u);
    EXPECT_EQ(second.dropped() + recorder.dropped(), 0);
  });
}

TEST_F(EventRecorderTest, LongTextsAreCutAtACharacter) {
  Run({}, [&](EventRecorder& recorder) {
    std::string note;
    for (int i = 0; i < 400; ++i) note += "€";
    EventDraft draft = Draft("Long", note);
    draft.regarding["name"] = std::string(250, 'n');
    recorder.Record(draft);
    Sleep(seconds(1));
    ASSERT_EQ(Events().size(), 1u);
    EXPECT_EQ(Events()[0]["note"].get<std::string>().size(), 999u);
    EXPECT_LE(Events()[0]["metadata"]["name"].get<std::string>().size(), 253u);
  });
}

}  // namespace
}  // namespace lambdadnn
