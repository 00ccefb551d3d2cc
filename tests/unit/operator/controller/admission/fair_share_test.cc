// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/fair_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace lambdadnn {
namespace {

using testing::ElementsAre;

constexpr Reservation kCapacity{1000, 10000};

Claim Wants(const std::string& name, double memory_mib, int created = 0, int64_t priority = 0) {
  const size_t slash = name.find('/');
  Claim claim;
  claim.name = {name.substr(0, slash), name.substr(slash + 1)};
  claim.created = "2033-01-01T00:00:0" + std::to_string(created) + "Z";
  claim.priority = priority;
  claim.reservation = {memory_mib, memory_mib};
  return claim;
}

Claim Lasting(Claim claim, double seconds) {
  claim.seconds = seconds;
  return claim;
}

std::vector<std::string> Names(const FairQueue& queue) {
  std::vector<std::string> names;
  for (const Claim& claim : queue.order()) {
    names.push_back(claim.name.namespace_name + "/" + claim.name.name);
  }
  return names;
}

// Which of them may start now.
std::vector<std::string> Starting(const FairQueue& queue) {
  std::vector<std::string> names;
  for (size_t i = 0; i < queue.order().size(); ++i) {
    const Claim& claim = queue.order()[i];
    if (MayStart(queue.turns()[i], claim.reservation, claim.seconds, kCapacity)) {
      names.push_back(claim.name.name);
    }
  }
  return names;
}

TEST(FairShare, JobsOfOneNamespaceStandByPriorityAndThenByAge) {
  const FairQueue queue({Wants("a/young", 100, 3), Wants("a/old", 100, 1),
                         Wants("a/urgent", 100, 5, 7), Wants("a/idle", 100, 0, -1)},
                        {}, kCapacity, {});
  EXPECT_THAT(Names(queue), ElementsAre("a/urgent", "a/old", "a/young", "a/idle"));
}

TEST(FairShare, ANamespaceWithManyJobsHoldsUpNoOther) {
  const FairQueue queue({Wants("many/1", 300, 0), Wants("many/2", 300, 1), Wants("many/3", 300, 2),
                         Wants("few/1", 300, 5)},
                        {}, kCapacity, {});
  EXPECT_THAT(Names(queue), ElementsAre("many/1", "few/1", "many/2", "many/3"));
  EXPECT_THAT(Starting(queue), ElementsAre("1", "1", "2"));
}

TEST(FairShare, APriorityCountsWithinItsNamespaceAlone) {
  const FairQueue queue({Wants("a/old", 100, 1), Wants("b/urgent", 100, 2, 1000)}, {}, kCapacity,
                        {});
  EXPECT_THAT(Names(queue), ElementsAre("a/old", "b/urgent"));
}

// Where jobs run one at a time no namespace holds anything when the next one is chosen.
TEST(FairShare, OfEqualSharesTheNamespaceIsNextThatStartedAJobLongestAgo) {
  const WallTime then{};
  const std::vector<Claim> claims = {Wants("a/1", 900, 0), Wants("b/1", 900, 1),
                                     Wants("c/1", 900, 2)};
  EXPECT_THAT(Names(FairQueue(claims, {}, kCapacity, {},
                              {{"a", then + FromSeconds(9)}, {"b", then + FromSeconds(5)}})),
              ElementsAre("c/1", "b/1", "a/1"));
}

TEST(FairShare, WhatJobsThatRunHoldCounts) {
  const FairQueue queue({Wants("a/1", 100, 0), Wants("b/1", 100, 1)}, {{"a", {400, 100}, {}}},
                        kCapacity, {});
  EXPECT_THAT(Names(queue), ElementsAre("b/1", "a/1"));
}

TEST(FairShare, TheLargerOneOfTheSharesOfMemoryAndOfCpuCounts) {
  // a holds a tenth of the memory and half of the CPU, b a third of the memory.
  const FairQueue queue({Wants("a/1", 100, 0), Wants("b/1", 100, 1)},
                        {{"a", {100, 5000}, {}}, {"b", {333, 100}, {}}}, kCapacity, {});
  EXPECT_THAT(Names(queue), ElementsAre("b/1", "a/1"));
  const FairQueue memory_alone({Wants("a/1", 100, 0), Wants("b/1", 100, 1)},
                               {{"a", {100, 5000}, {}}, {"b", {333, 100}, {}}}, {1000, 0}, {});
  EXPECT_THAT(Names(memory_alone), ElementsAre("a/1", "b/1"));
}

TEST(FairShare, AWeightOfTwoGetsTwiceAsMuch) {
  std::vector<Claim> claims;
  for (int i = 0; i < 4; ++i) {
    claims.push_back(Wants("a/" + std::to_string(i), 100, i));
    claims.push_back(Wants("b/" + std::to_string(i), 100, i));
  }
  const FairQueue queue(claims, {}, kCapacity, {{"b", 2}});
  EXPECT_THAT(Names(queue), ElementsAre("a/0", "b/0", "b/1", "a/1", "b/2", "b/3", "a/2", "a/3"));
}

TEST(FairShare, TheLastTurnIsThatOfAJobWhichComesAfterAll) {
  const FairQueue queue({Wants("a/1", 300, 0), Wants("a/2", 800, 1)}, {{"b", {100, 100}, {}}},
                        kCapacity, {});
  ASSERT_EQ(queue.turns().size(), 3U);
  EXPECT_EQ(queue.turns()[2].ahead, 2U);
  EXPECT_EQ(queue.turns()[2].before.memory_mib, 1100);
  EXPECT_EQ(queue.turns()[2].taken.memory_mib, 400);
  EXPECT_TRUE(queue.turns()[2].overtakes);
}

// Of rows behind one that waits for all of the capacity, while 800 of 1000 MiB are held for 100 s.
TEST(FairShare, OneThatOvertakesDelaysNobody) {
  struct Row {
    const char* what;
    double memory_mib;
    std::optional<double> seconds;
    std::optional<double> held_for;
    double first_needs;
    bool starts;
  };
  for (const Row& row : {
           Row{"ends in time", 150, 60, 100, 1000, true},
           Row{"ends too late, with the margin", 150, 80, 100, 1000, false},
           Row{"nobody knows when it ends", 150, {}, 100, 1000, false},
           Row{"takes what the first leaves over", 150, {}, 100, 850, true},
           Row{"takes more than that", 151, {}, 100, 850, false},
           Row{"finds nothing free", 250, 1, 100, 1000, false},
           Row{"nobody knows when the first can start", 150, 1, {}, 1000, false},
       }) {
    SCOPED_TRACE(row.what);
    Claim second = Wants("b/second", row.memory_mib, 1);
    second.seconds = row.seconds;
    const FairQueue queue({Wants("a/first", row.first_needs, 0), second},
                          {{"c", {800, 800}, row.held_for}}, kCapacity, {});
    ASSERT_THAT(Names(queue), ElementsAre("a/first", "b/second"));
    EXPECT_EQ(Starting(queue).size(), row.starts ? 1 : 0);
  }
}

TEST(FairShare, ThoseWhoOvertakeShareWhatIsSpare) {
  const FairQueue queue({Wants("a/first", 700, 0), Wants("b/1", 150, 1), Wants("c/1", 150, 2),
                         Lasting(Wants("d/1", 50, 3), 10)},
                        {{"e", {500, 500}, 100}}, kCapacity, {});
  ASSERT_EQ(Names(queue).front(), "a/first");
  EXPECT_EQ(Starting(queue).size(), 3);
  const FairQueue tighter({Wants("a/first", 800, 0), Wants("b/1", 150, 1), Wants("c/1", 150, 2)},
                          {{"e", {500, 500}, 100}}, kCapacity, {});
  EXPECT_EQ(Starting(tighter).size(), 1);
}

// As predicted, the first job that has to wait starts when it would have without those who
// overtake.
TEST(FairShare, WhateverIsHeldAndWantedTheFirstStartsInTime) {
  std::mt19937 random(7);
  const auto draw = [&](int most) { return static_cast<double>(1 + random() % most); };
  int overtaken = 0;
  for (int world = 0; world < 2000; ++world) {
    std::vector<Holding> holdings;
    double held = 0;
    while (held < 700) {
      const double memory = draw(300);
      if (held + memory > kCapacity.memory_mib) break;
      held += memory;
      holdings.push_back({"n" + std::to_string(random() % 3), {memory, memory}, draw(100)});
    }
    std::vector<Claim> claims;
    for (int i = 0; i < 12; ++i) {
      claims.push_back(Lasting(Wants("n" + std::to_string(random() % 3) + "/" + std::to_string(i),
                                     draw(600), static_cast<int>(random() % 10)),
                               draw(100)));
    }
    const FairQueue queue(claims, holdings, kCapacity, {});
    std::vector<Holding> running = holdings;
    const Claim* first = nullptr;
    std::optional<double> moment;
    for (size_t i = 0; i < queue.order().size(); ++i) {
      const Claim& claim = queue.order()[i];
      const QueueTurn& turn = queue.turns()[i];
      if (MayStart(turn, claim.reservation, claim.seconds, kCapacity)) {
        running.push_back({claim.name.namespace_name, claim.reservation, claim.seconds});
        if (first != nullptr) {
          ++overtaken;
          moment = turn.first_starts_in;
        }
      } else if (first == nullptr) {
        first = &claim;
      }
    }
    double now = 0, then = 0;
    for (const Holding& each : running) {
      now += each.reservation.memory_mib;
      if (moment.has_value() && *each.seconds_left > *moment) then += each.reservation.memory_mib;
    }
    EXPECT_LE(now, kCapacity.memory_mib);
    if (moment.has_value()) {
      EXPECT_LE(then + first->reservation.memory_mib, kCapacity.memory_mib) << "world " << world;
    }
  }
  EXPECT_GT(overtaken, 500);
}

}  // namespace
}  // namespace lambdadnn
