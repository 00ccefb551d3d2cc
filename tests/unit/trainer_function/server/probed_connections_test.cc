// SPDX-License-Identifier: Apache-2.0
// What role `profile` measures of connections between functions: within one, and with the other
// function that keeps the machine busy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/process_usage.h"
#include "common/objectstore/memory_object_store.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"
#include "trainer_function/peer/peer_key.h"
#include "trainer_function/peer/tcp_network.h"
#include "trainer_function/server/slice_service.h"
#include "trainer_function/training/host_probe.h"
#include "trainer_function/training/probed_hosts.h"

namespace lambdadnn {
namespace {

constexpr const char* kMeasured[] = {"aloneCpuSeconds", "directPairCpuSeconds",
                                     "directFourCpuSeconds", "storePairCpuSeconds"};
const Role kMeasuring = {RoleKind::kProfile, 0, {}};
Role Partner(int rank) { return {RoleKind::kProfile, rank, {}}; }

HarnessJob SmallJob() {
  HarnessJob job;
  job.layers = {1, 1};
  job.shards = 1;
  return job;
}

class ProbedConnectionsTest : public testing::Test {
 protected:
  Result<OpenedNetwork> Listen() {
    LDNN_ASSIGN_OR_RETURN(auto network,
                          TcpNetwork::Listen(runtime_, "127.0.0.1", 0, DerivePeerKeys("key").tls));
    std::string address = "127.0.0.1:" + std::to_string(network->port());
    return OpenedNetwork{std::move(network), std::move(address)};
  }

  // Of a function that others reach over `network`.
  SliceEnvironment Environment(const Role& role, const OpenedNetwork& network) {
    SliceEnvironment environment = harness_.Environment(role);
    environment.peers = {network.network.get(), DerivePeerKeys("key").handshake, nullptr,
                         [this] { return Listen(); }};
    return environment;
  }

  SliceRequest Request(const Role& role) const {
    SliceRequest request = job_.Request(role, 0, std::nullopt);
    request.plan.parameters = 0;  // not known yet
    request.profile.iterations = 2;
    request.profile.batch_size = 16;
    request.profile.filler = role.rank > 0;
    request.training.epochs = 1'000'000'000;  // worth measuring all, however busy the machine is
    return request;
  }

  // Of a function that is told of the others of so many.
  SliceRequest Request(const Role& role, int functions) const {
    SliceRequest request = Request(role);
    for (int rank = 0; rank < functions; ++rank) {
      if (rank == role.rank) continue;
      request.peers.push_back({{RoleKind::kWorker, rank, {}}, networks_[At(rank)].address});
    }
    return request;
  }

  // Of one of two functions of a job that exchanges in this way.
  SliceRequest OfTwo(const Role& role, TransportKind transport, Placement placement) const {
    SliceRequest request = Request(role, 2);
    request.plan.aggregation.placement = placement;
    request.plan.aggregation.transport = transport;
    return request;
  }

  // What the first one of so many says.
  SliceRecord Profiled(int functions) {
    return Profiled(functions, Environment(kMeasuring, networks_.front()));
  }
  SliceRecord Profiled(int functions, SliceEnvironment environment) {
    SliceService service(runtime_, std::move(environment));
    const SliceRequest request = Request(kMeasuring, functions);
    const Status started = service.Start(request);
    EXPECT_TRUE(started.ok()) << started.ToString();
    return started.ok() ? AwaitRecord(runtime_, service, request.invocation) : SliceRecord{};
  }

  // The others step on between exchanges and after them.
  SliceRecord ProfiledBesideFillers(int functions) {
    return ProfiledBesideFillers(functions, Environment(kMeasuring, networks_.front()));
  }
  SliceRecord ProfiledBesideFillers(int functions, SliceEnvironment environment) {
    std::vector<std::unique_ptr<SliceService>> fillers;
    for (int rank = 1; rank < functions; ++rank) {
      const Role role = Partner(rank);
      fillers.push_back(
          std::make_unique<SliceService>(runtime_, Environment(role, networks_[At(rank)])));
      EXPECT_TRUE(fillers.back()->Start(Request(role, functions)).ok());
    }
    SliceRecord record = Profiled(functions, std::move(environment));
    EXPECT_EQ(ListAll(store_, "").value().size(), 1u) << "its completion record alone";
    for (int rank = 1; rank < functions; ++rank) {
      SliceService& filler = *fillers[At(rank - 1)];
      const std::string invocation = Request(Partner(rank)).invocation;
      EXPECT_EQ(filler.Running(), invocation);
      EXPECT_TRUE(filler.Stop(invocation, true).ok());
      EXPECT_EQ(AwaitRecord(runtime_, filler, invocation).outcome, SliceOutcome::kFinished);
    }
    return record;
  }

  // What the parts of role profile are given.
  struct Probing {
    Probing(ProbedConnectionsTest& test, SliceRequest of, const SliceEnvironment& environment)
        : interrupt(test.runtime_, test.runtime_.clock.Now() + std::chrono::seconds(60)),
          phases(test.runtime_.clock, {}, test.runtime_.clock.Now()),
          request(std::move(of)),
          context{.runtime = test.runtime_,
                  .store = test.store_,
                  .interrupt = interrupt,
                  .request = request,
                  .emit = [](const ProgressLine&) {},
                  .stop_wanted = [] { return false; },
                  .pace = [] {},
                  .phases = phases} {
      training.cpu_seconds = [] { return CurrentProcessUsage().cpu_seconds; };
      training.peers = environment.peers;
    }

    TrainingEnvironment training;
    Interrupt interrupt;
    PhaseMeter phases;
    const SliceRequest request;
    const RoleContext context;
  };

  // Of all that is measured with another function.
  void ExpectFirst(TransportKind transport, Placement placement,
                   const std::set<std::string_view>& names) {
    SliceService filler(runtime_, Environment(Partner(1), networks_[1]));
    ASSERT_TRUE(filler.Start(OfTwo(Partner(1), transport, placement)).ok());
    Probing probing(*this, OfTwo(kMeasuring, transport, placement),
                    Environment(kMeasuring, networks_[0]));
    HostProbes probes(probing.context, probing.training, {}, job_.parameters);
    ASSERT_TRUE(probes.Measure(0, 0).ok());
    SliceRecord record;
    probes.Record(0, &record);
    EXPECT_EQ(record.metrics.at("functionsApart"), 2);
    for (const char* const each :
         {"directPairCpuSeconds", "directWorkerCpuSeconds", "directServerCpuSeconds",
          "storePairCpuSeconds", "storeWorkerCpuSeconds", "storeServerCpuSeconds"}) {
      EXPECT_EQ(record.metrics.contains(each), names.contains(each)) << each;
    }
  }

  static size_t At(int rank) { return static_cast<size_t>(rank); }

  static void ExpectMeasured(const SliceRecord& record, int apart) {
    ASSERT_EQ(record.outcome, SliceOutcome::kFinished) << record.error.ToString();
    for (const char* name : kMeasured) EXPECT_GT(record.metrics.at(name), 0) << name;
    for (const char* name : {"directWorkerCpuSeconds", "directServerCpuSeconds",
                             "storeWorkerCpuSeconds", "storeServerCpuSeconds"}) {
      const auto found = record.metrics.find(name);
      EXPECT_EQ(found != record.metrics.end() && found->second > 0, apart > 0) << name;
    }
    for (const char* name : {"directFourCpuSecondsPerByte", "directServerOfThreeCpuSeconds",
                             "storeServerOfThreeCpuSeconds"}) {
      EXPECT_EQ(record.metrics.contains(name), apart == 4) << name;
    }
    EXPECT_EQ(record.metrics.contains("directPairWaitSeconds"), apart > 0);
    EXPECT_EQ(record.metrics.at("functionsApart"), apart);
  }

  SystemRuntime runtime_;
  MemoryObjectStore store_;
  HarnessJob job_ = SmallJob();
  SliceHarness harness_{runtime_, store_, job_};
  // Of the function that measures and of three others.
  std::array<OpenedNetwork, kMostProbedFunctions> networks_ = {*Listen(), *Listen(), *Listen(),
                                                               *Listen()};
};

TEST_F(ProbedConnectionsTest, OneFunctionMeasuresThemWithinItself) {
  const SliceRecord record = Profiled(1);
  ExpectMeasured(record, 0);
  for (const char* name :
       {"directSeconds", "directDeviationSeconds", "directSendCpuSeconds", "directPullCpuSeconds",
        "doorbellSendCpuSeconds", "doorbellReceiveCpuSeconds"})
    EXPECT_GT(record.metrics.at(name), 0) << name;
  EXPECT_GE(record.metrics.at("directPushCpuSeconds"), 0) << "less than the clock tells apart";
  EXPECT_EQ(ListAll(store_, "").value().size(), 1u) << "its completion record alone";
}

TEST_F(ProbedConnectionsTest, TwoFunctionsMeasureThemTogether) {
  ExpectMeasured(ProfiledBesideFillers(2), 2);
}

TEST_F(ProbedConnectionsTest, SoDoFour) { ExpectMeasured(ProfiledBesideFillers(4), 4); }

TEST_F(ProbedConnectionsTest, OfThreeTwoMeasureThem) {
  ExpectMeasured(ProfiledBesideFillers(3), 2);
}

TEST_F(ProbedConnectionsTest, AFunctionThatIsNotReachedIsNotNeeded) {
  networks_[1].network.reset();
  ExpectMeasured(Profiled(2), 0);
}

// Under a small quota there is no time for all.
TEST_F(ProbedConnectionsTest, HowWorkersThatServeExchangeIsMeasuredFirst) {
  ExpectFirst(TransportKind::kDirect, Placement::kWorkers, {"directPairCpuSeconds"});
}

TEST_F(ProbedConnectionsTest, HowDedicatedServersExchangeIsMeasuredFirst) {
  ExpectFirst(TransportKind::kDirect, Placement::kDedicated,
              {"directWorkerCpuSeconds", "directServerCpuSeconds"});
}

TEST_F(ProbedConnectionsTest, HowTheyExchangeThroughTheStoreIsMeasuredFirst) {
  ExpectFirst(TransportKind::kObjectStore, Placement::kDedicated,
              {"storeWorkerCpuSeconds", "storeServerCpuSeconds"});
  ExpectFirst(TransportKind::kObjectStore, Placement::kWorkers,
              {"storePairCpuSeconds", "storeWorkerCpuSeconds"});
}

TEST_F(ProbedConnectionsTest, HowLongItWaitsForASlowerOneIsMeasured) {
  constexpr double kStepSeconds = 0.02;
  const ProbedStep sleep = {[this] {
                              runtime_.clock.SleepFor(FromSeconds(kStepSeconds));
                              return OkStatus();
                            },
                            true};
  // Its own step is none of it.
  for (const bool is_slower : {false, true}) {
    const Probing slow(*this, OfTwo(Partner(1), TransportKind::kDirect, Placement::kWorkers),
                       Environment(Partner(1), networks_[1]));
    ProbePartner partner(slow.context, slow.training, is_slower ? ProbedStep{} : sleep,
                         job_.parameters);
    std::atomic<bool> done = false;
    const auto filler = runtime_.executor.Spawn("partner", [&] {
      while (!done) {
        (void)partner.Join(0);
        runtime_.clock.SleepFor(std::chrono::milliseconds(1));
      }
    });
    const Probing probing(*this, OfTwo(kMeasuring, TransportKind::kDirect, Placement::kWorkers),
                          Environment(kMeasuring, networks_[0]));
    HostProbes probes(probing.context, probing.training, is_slower ? sleep : ProbedStep{},
                      job_.parameters);
    EXPECT_TRUE(probes.Measure(0, 0).ok());
    done = true;
    SliceRecord record;
    probes.Record(0, &record);
    ASSERT_TRUE(record.metrics.contains("directPairWaitSeconds"));
    const double wait = record.metrics.at("directPairWaitSeconds");
    EXPECT_EQ(wait > kStepSeconds / 2, !is_slower) << wait;
  }
}

TEST_F(ProbedConnectionsTest, WaitsAreNotMeasuredWhereAQuotaStopsTheFunction) {
  auto stalls = std::make_shared<std::atomic<int64_t>>(0);
  SliceEnvironment throttled = Environment(kMeasuring, networks_.front());
  throttled.throttled_seconds = [stalls] { return static_cast<double>(++*stalls); };
  const SliceRecord record = ProfiledBesideFillers(2, std::move(throttled));
  EXPECT_GT(record.metrics.at("directPairCpuSeconds"), 0);
  EXPECT_FALSE(record.metrics.contains("directPairWaitSeconds"));
}

// Connected, and gone before it has done anything.
TEST_F(ProbedConnectionsTest, AFunctionThatIsLostIsNotWaitedFor) {
  const Probing probing(*this, Request(Partner(1)), Environment(Partner(1), networks_[1]));
  const ProbedStep none;
  const auto exchanges = ProbedExchanges(job_.parameters);
  const auto first = std::ranges::find_if(exchanges, [&](const HostExchange& exchange) {
    const AggregationPlan& job = probing.request.plan.aggregation;
    return exchange.transport == job.transport && exchange.placement == job.placement;
  });
  std::optional<ProbedHosts> partner;
  partner.emplace(probing.context, probing.training, none, 0, *first, HostApart{1, 0, {}});
  ASSERT_TRUE(partner->Open().ok());
  const auto lost = runtime_.executor.Spawn("partner", [&] {
    while (!partner->IsConnected()) runtime_.clock.SleepFor(std::chrono::milliseconds(1));
    partner.reset();
  });
  ExpectMeasured(Profiled(2), 0);
}

}  // namespace
}  // namespace lambdadnn
