// SPDX-License-Identifier: Apache-2.0
// Elections in virtual time: processes die, freeze, are cut off, lose replies.
#include "operator/kube/leader_election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "operator/kube/in_memory_api_server.h"
#include "operator/kube/micro_time.h"
#include "operator/kube/object_metadata.h"
#include "tests/simulation/sim_runtime.h"
#include "tests/simulation/sim_scheduler.h"
#include "tests/support/faulty_kube_client.h"
#include "tests/support/refusing_kube_client.h"

namespace lambdadnn {
namespace {

using simulation::SimProcess;
using simulation::SimScheduler;
using std::chrono::seconds;
using testing::HasSubstr;

const ObjectName kLease{"lambdadnn-system", "lambdadnn-operator"};

// One API server and candidates "a", "b", …, each a process of its own.
class Elections : public testing::Test {
 protected:
  struct Candidate {
    SimProcess* process;
    std::unique_ptr<FaultyKubeClient> client;
    std::unique_ptr<LeaderElection> election;
    std::string lost;
  };

  Elections()
      : server_process_(scheduler_.NewProcess("server")), server_(server_process_.runtime()) {
    ResourceDefinition leases;
    leases.type = LeaseType();
    server_.Define(std::move(leases));
  }

  void Add(const std::string& name, FaultyKubeClient::Decide decide = nullptr) {
    Candidate& candidate = candidates_[name];
    candidate.process = &scheduler_.NewProcess(name);
    if (!decide) decide = [](const auto&, const auto&, auto) { return OkStatus(); };
    candidate.client = std::make_unique<FaultyKubeClient>(server_, std::move(decide));
    candidate.election = std::make_unique<LeaderElection>(
        *candidate.client, candidate.process->runtime(),
        LeaderElectionOptions{.lease = kLease, .identity = name},
        LeaderElection::Callbacks{.on_acquired =
                                      [this, name](int64_t epoch) {
                                        epochs_.push_back(epoch);
                                        leaders_.insert(name);
                                        EXPECT_EQ(leaders_.size(), 1u)
                                            << "at " << ToSeconds(Now()) << " s";
                                        acquired_[name] = Now();
                                      },
                                  .on_lost =
                                      [this, name](const std::string& why) {
                                        leaders_.erase(name);
                                        candidates_[name].lost = why;
                                        lost_[name] = Now();
                                      },
                                  .on_new_leader = nullptr});
    candidate.process->Spawn("main", [&candidate] { candidate.election->Start(); });
  }

  Duration Now() const { return scheduler_.Now().time_since_epoch(); }
  void RunUntil(double time) {
    bool done = false;
    scheduler_.At(Instant(FromSeconds(time)), [&] { done = true; });
    const Status ran = scheduler_.Run([&] { return done; }, {});
    ASSERT_TRUE(ran.ok()) << ran.ToString();
  }
  void Kill(const std::string& name) {
    candidates_[name].process->Kill();
    leaders_.erase(name);
    // Its fibers are gone; the object must not join them.
    (void)candidates_[name].election.release();
  }
  void Stop(const std::string& name) {
    candidates_[name].process->Spawn("stop", [this, name] {
      leaders_.erase(name);
      candidates_[name].election->Stop();
    });
  }
  // Remaining candidates end with the scheduler.
  ~Elections() override {
    for (auto& [name, candidate] : candidates_) (void)candidate.election.release();
  }

  SimScheduler scheduler_{1};
  SimProcess& server_process_;
  InMemoryApiServer server_;
  std::map<std::string, Candidate> candidates_;
  std::set<std::string> leaders_;
  std::vector<int64_t> epochs_;
  std::map<std::string, Duration> acquired_;
  std::map<std::string, Duration> lost_;
};

TEST_F(Elections, OneLeadsAndGoesOnLeading) {
  Add("a");
  RunUntil(1);
  Add("b");
  RunUntil(600);
  EXPECT_EQ(leaders_, std::set<std::string>{"a"});
  EXPECT_EQ(epochs_.size(), 1u);
  const Json lease = server_.Get(LeaseType(), kLease).value();
  EXPECT_EQ(lease["spec"]["holderIdentity"], "a");
  EXPECT_EQ(lease["spec"]["leaseDurationSeconds"], 15);
  EXPECT_EQ(lease["spec"]["leaseTransitions"], 0);
  EXPECT_NE(lease["spec"]["acquireTime"], lease["spec"]["renewTime"]);
}

TEST_F(Elections, ADeadLeaderIsFollowedAfterTheLease) {
  Add("a");
  RunUntil(1);
  Add("b");
  RunUntil(100);
  Kill("a");
  RunUntil(130);
  ASSERT_EQ(leaders_, std::set<std::string>{"b"});
  EXPECT_GT(acquired_["b"], seconds(112)) << "the last renewal may be two seconds old, no more";
  EXPECT_LT(acquired_["b"], seconds(120));
  ASSERT_EQ(epochs_.size(), 2u);
  EXPECT_GT(epochs_[1], epochs_[0]);
  EXPECT_EQ(server_.Get(LeaseType(), kLease).value()["spec"]["leaseTransitions"], 1);
}

TEST_F(Elections, ALeaseGivenBackIsTakenAtOnce) {
  Add("a");
  RunUntil(1);
  Add("b");
  RunUntil(100);
  Stop("a");
  RunUntil(110);
  ASSERT_EQ(leaders_, std::set<std::string>{"b"});
  EXPECT_LT(acquired_["b"], seconds(103));
  EXPECT_EQ(candidates_["a"].lost, "") << "it went by itself";
}

TEST_F(Elections, ALeaderThatIsCutOffEndsBeforeTheNextBegins) {
  bool cut = false;
  Add("a", [&](const auto&, const auto&, auto) {
    return cut ? UnavailableError("no route to host") : OkStatus();
  });
  RunUntil(1);
  Add("b");
  RunUntil(100);
  cut = true;
  RunUntil(130);
  EXPECT_EQ(leaders_, std::set<std::string>{"b"});
  EXPECT_LT(lost_["a"] + seconds(2), acquired_["b"]);
  EXPECT_THAT(candidates_["a"].lost, HasSubstr("no route to host"));
}

TEST_F(Elections, ALeaderWhoseRenewalHangsEndsBeforeTheNextBegins) {
  bool hangs = false;
  Add("a", [&](const auto&, const auto&, FaultyKubeClient::Point point) {
    if (hangs && point == FaultyKubeClient::Point::kBefore) {
      candidates_["a"].process->runtime().clock.SleepFor(seconds(60));
    }
    return OkStatus();
  });
  RunUntil(1);
  Add("b");
  RunUntil(100);
  hangs = true;
  RunUntil(130);
  EXPECT_EQ(leaders_, std::set<std::string>{"b"});
  EXPECT_LT(lost_["a"] + seconds(2), acquired_["b"]);
  EXPECT_THAT(candidates_["a"].lost, HasSubstr("could not be renewed in time"));
  RunUntil(300);
  EXPECT_EQ(epochs_.size(), 2u) << "what it still hears makes it no leader";
}

TEST_F(Elections, ALeaderThatWasFrozenLearnsThatItLeadsNoMore) {
  bool freeze = false;
  Add("a", [&](const std::string& call, const auto&, FaultyKubeClient::Point point) {
    // Between the decision to renew and the request.
    if (freeze && call == "update" && point == FaultyKubeClient::Point::kBefore) {
      freeze = false;
      leaders_.erase("a");
      candidates_["a"].process->Freeze(Instant(Now()) + seconds(30));
      candidates_["a"].process->runtime().clock.SleepFor(seconds(1));
    }
    return OkStatus();
  });
  RunUntil(1);
  Add("b");
  RunUntil(100);
  freeze = true;
  RunUntil(129);
  EXPECT_EQ(candidates_["a"].lost, "") << "it does nothing";
  RunUntil(160);
  EXPECT_EQ(leaders_, std::set<std::string>{"b"});
  EXPECT_NE(candidates_["a"].lost, "");
  EXPECT_LT(lost_["a"], seconds(133)) << "by its own clock, at once";
  EXPECT_EQ(server_.Get(LeaseType(), kLease).value()["spec"]["holderIdentity"], "b");
}

TEST_F(Elections, ADeletedLeaseIsANewElectionWithAHigherEpoch) {
  Add("a");
  RunUntil(100);
  ASSERT_TRUE(server_.Delete(LeaseType(), kLease, "").ok());
  leaders_.erase("a");  // by right; it learns of it within retry_seconds, until then epochs fence
  Add("b");
  RunUntil(130);
  EXPECT_EQ(leaders_, std::set<std::string>{"b"});
  EXPECT_NE(candidates_["a"].lost, "");
  ASSERT_EQ(epochs_.size(), 2u);
  EXPECT_GT(epochs_[1], epochs_[0]);
}

TEST_F(Elections, LostRequestsAndRepliesNeverMakeTwoLeaders) {
  SeededRandom random(5);
  const auto flaky = [&](const auto&, const auto&, auto) {
    return random.Uniform() < 0.3 ? UnavailableError("lost") : OkStatus();
  };
  for (const char* name : {"a", "b", "c"}) Add(name, flaky);
  RunUntil(3600);  // EXPECTs in on_acquired
  EXPECT_GE(epochs_.size(), 1u);
  for (size_t i = 1; i < epochs_.size(); ++i) EXPECT_GT(epochs_[i], epochs_[i - 1]);
}

TEST_F(Elections, WhoHoldsTheLeaseIsTheServersWord) {
  bool cut = false;
  Add("a", [&](const std::string& call, const auto&, auto) {
    // Renewals that are lost leave the process in its belief for a while.
    return cut && call == "update" ? UnavailableError("lost") : OkStatus();
  });
  RunUntil(1);
  LeaderElection& election = *candidates_["a"].election;
  EXPECT_EQ(election.HoldsNow().value(), true);
  cut = true;
  Json lease = server_.Get(LeaseType(), kLease).value();
  lease["spec"]["holderIdentity"] = "b";
  ASSERT_TRUE(server_.Update(LeaseType(), lease, Subresource::kNone).ok());
  EXPECT_TRUE(election.is_leader());
  EXPECT_EQ(election.HoldsNow().value(), false);
  ASSERT_TRUE(server_.Delete(LeaseType(), kLease, "").ok());
  EXPECT_EQ(election.HoldsNow().value(), false);
}

TEST_F(Elections, WithoutAnAnswerNobodyKnowsWhoHoldsTheLease) {
  bool cut = false;
  Add("a", [&](const std::string& call, const auto&, auto) {
    return cut && call == "get" ? UnavailableError("no route to host") : OkStatus();
  });
  RunUntil(1);
  cut = true;
  EXPECT_EQ(candidates_["a"].election->HoldsNow().status().code(), StatusCode::kUnavailable);
}

// Answers writes of a Lease with whatever it is told.
class OddLeases final : public RefusingKubeClient {
 public:
  explicit OddLeases(Json answer) : answer_(std::move(answer)) {}
  Result<Json> Get(const ResourceType&, const ObjectName&) override {
    return NotFoundError("no lease");
  }
  Result<Json> Create(const ResourceType&, const Json&) override { return answer_; }
  Result<Json> Update(const ResourceType&, const Json&, Subresource) override { return answer_; }

 private:
  const Json answer_;
};

TEST_F(Elections, AnAnswerWithoutAVersionMakesNoLeader) {
  for (const char* answer :
       {"[]", "5", "{}", R"({"metadata":[]})", R"({"metadata":{"resourceVersion":"soon"}})",
        R"({"metadata":{"resourceVersion":"-7"}})"}) {
    OddLeases client(Json::parse(answer));
    SimProcess& process = scheduler_.NewProcess(answer);
    int acquired = 0;
    LeaderElection election(client, process.runtime(), {.lease = kLease, .identity = "a"},
                            {.on_acquired = [&](int64_t) { ++acquired; },
                             .on_lost = [](const std::string&) {},
                             .on_new_leader = nullptr});
    process.Spawn("main", [&] { election.Start(); });
    RunUntil(ToSeconds(Now()) + 30);
    EXPECT_EQ(acquired, 0) << answer;
    process.Spawn("stop", [&] { election.Stop(); });
    RunUntil(ToSeconds(Now()) + 30);
  }
}

TEST(LeaderElectionOptions, TimesMustBeInOrder) {
  EXPECT_TRUE(LeaderElectionOptions{}.Validate().ok());
  EXPECT_FALSE(LeaderElectionOptions{.renew_seconds = 15}.Validate().ok());
  EXPECT_FALSE(LeaderElectionOptions{.retry_seconds = 10}.Validate().ok());
  EXPECT_FALSE(LeaderElectionOptions{.retry_seconds = 0}.Validate().ok());
}

TEST(MicroTime, HasSixDigits) {
  EXPECT_EQ(FormatMicroTime(WallTime{}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(FormatMicroTime(WallTime(std::chrono::nanoseconds(1'000'001'999))),
            "1970-01-01T00:00:01.000001Z");
}

}  // namespace
}  // namespace lambdadnn
