// SPDX-License-Identifier: Apache-2.0
// What role `profile` measures of connections between functions: within one, and with the other
// function that keeps the machine busy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "common/objectstore/memory_object_store.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"
#include "trainer_function/peer/peer_key.h"
#include "trainer_function/peer/tcp_network.h"
#include "trainer_function/server/slice_service.h"
#include "trainer_function/training/probed_hosts.h"

namespace lambdadnn {
namespace {

constexpr const char* kMeasured[] = {"aloneCpuSeconds", "directPairCpuSeconds",
                                     "directFourCpuSeconds", "storePairCpuSeconds"};
const Role kMeasuring = {RoleKind::kProfile, 0, {}};
const Role kPartner = {RoleKind::kProfile, kPartnerRank, {}};

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
    return request;
  }

  // What a function says that measures and is told of a partner at this address.
  SliceRecord Profiled(const std::string& partner) {
    SliceService service(runtime_, Environment(kMeasuring, own_));
    SliceRequest request = Request(kMeasuring);
    if (!partner.empty()) {
      request.peers.push_back({{RoleKind::kWorker, kPartnerRank, {}}, partner});
    }
    const Status started = service.Start(request);
    EXPECT_TRUE(started.ok()) << started.ToString();
    return started.ok() ? AwaitRecord(runtime_, service, request.invocation) : SliceRecord{};
  }

  static void ExpectMeasured(const SliceRecord& record, bool apart) {
    ASSERT_EQ(record.outcome, SliceOutcome::kFinished) << record.error.ToString();
    for (const char* name : kMeasured) EXPECT_GT(record.metrics.at(name), 0) << name;
    EXPECT_EQ(record.metrics.at("functionsApart"), apart ? 1 : 0);
  }

  SystemRuntime runtime_;
  MemoryObjectStore store_;
  HarnessJob job_ = SmallJob();
  SliceHarness harness_{runtime_, store_, job_};
  OpenedNetwork own_ = *Listen();
  OpenedNetwork others_ = *Listen();
};

TEST_F(ProbedConnectionsTest, OneFunctionMeasuresThemWithinItself) {
  const SliceRecord record = Profiled("");
  ExpectMeasured(record, false);
  for (const char* name :
       {"directSeconds", "directDeviationSeconds", "directSendCpuSeconds", "directPullCpuSeconds",
        "doorbellSendCpuSeconds", "doorbellReceiveCpuSeconds"})
    EXPECT_GT(record.metrics.at(name), 0) << name;
  EXPECT_GE(record.metrics.at("directPushCpuSeconds"), 0) << "less than the clock tells apart";
  EXPECT_EQ(ListAll(store_, "").value().size(), 1u) << "its completion record alone";
}

// The filler steps on between its exchanges and after them.
TEST_F(ProbedConnectionsTest, TwoFunctionsMeasureThemTogether) {
  SliceService filler(runtime_, Environment(kPartner, others_));
  const SliceRequest filling = Request(kPartner);
  ASSERT_TRUE(filler.Start(filling).ok());
  ExpectMeasured(Profiled(others_.address), true);
  EXPECT_EQ(ListAll(store_, "").value().size(), 1u) << "its completion record alone";
  EXPECT_EQ(filler.Running(), filling.invocation);
  ASSERT_TRUE(filler.Stop(filling.invocation, true).ok());
  EXPECT_EQ(AwaitRecord(runtime_, filler, filling.invocation).outcome, SliceOutcome::kFinished);
}

TEST_F(ProbedConnectionsTest, AFunctionThatIsNotReachedIsNotNeeded) {
  others_.network.reset();
  ExpectMeasured(Profiled(others_.address), false);
}

// Connected, and gone before it has done anything.
TEST_F(ProbedConnectionsTest, AFunctionThatIsLostIsNotWaitedFor) {
  SliceEnvironment environment = Environment(kPartner, others_);
  TrainingEnvironment training;
  training.cpu_seconds = [] { return 1.0; };
  training.peers = environment.peers;
  Interrupt interrupt(runtime_, runtime_.clock.Now() + std::chrono::seconds(60));
  PhaseMeter phases(runtime_.clock, {}, runtime_.clock.Now());
  const SliceRequest request = Request(kPartner);
  const RoleContext context = {.runtime = runtime_,
                               .store = store_,
                               .interrupt = interrupt,
                               .request = request,
                               .emit = {},
                               .stop_wanted = {},
                               .pace = [] {},
                               .phases = phases};
  const ProbedStep none;
  const HostExchange first = ProbedPairs(job_.parameters).front();
  std::optional<ProbedHosts> partner;
  partner.emplace(context, training, none, 0, first, HostApart{kPartnerRank, 0, {}});
  ASSERT_TRUE(partner->Open().ok());
  const auto lost = runtime_.executor.Spawn("partner", [&] {
    while (!partner->IsConnected()) runtime_.clock.SleepFor(std::chrono::milliseconds(1));
    partner.reset();
  });
  ExpectMeasured(Profiled(others_.address), false);
}

}  // namespace
}  // namespace lambdadnn
