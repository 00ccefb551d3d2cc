// SPDX-License-Identifier: Apache-2.0
// The transport of a function with several roles (Placement::kWorkers): what its roles hand to each
// other stays in its memory, as no object; everything else goes through another transport. What is
// read here and elsewhere goes both ways. Requests that are left are HostIterationCost
// (common/plan/collective_cost.h).
//
// Memory: each payload, or a copy where nobody owns it, from its push until the last role here has
// pulled it.
#pragma once

#include <map>
#include <memory>

#include "common/base/runtime.h"
#include "common/plan/exchange_roles.h"
#include "trainer_function/transport/exchange_codec.h"
#include "trainer_function/transport/role_context.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

class LoopbackTransport final : public Transport {
 public:
  // Of the slice that the context is of. Both must outlive this.
  LoopbackTransport(const RoleContext& context, Transport& others);

  Status Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
              const SharedView& payload) override;
  Result<ReceivedObject> Pull(const ExchangeObjectName& name, Range elements) override;
  Status Discard(std::span<const ExchangeObjectName> names) override;
  bool HoldsInMemory() const override { return others_.HoldsInMemory(); }
  int WaitingPulls() const override { return others_.WaitingPulls(); }

 private:
  class Arrival;

  // Who reads what a role of this function writes.
  struct Readers {
    int here = 0;  // pulls
    bool elsewhere = false;
  };
  Readers ReadersOf(const ExchangeObjectName& name) const;
  bool IsWrittenHere(const ExchangeObjectName& name) const;

  struct Held {
    ReceivedObject object;
    int readers = 0;  // that have not pulled it
  };
  struct Awaited {
    int pulls = 0;
    std::unique_ptr<MonitorCondition> came = nullptr;
  };

  Clock& clock_;
  Interrupt& interrupt_;
  Transport& others_;
  const AggregationPlan& aggregation_;
  const ExchangeCodec codec_;
  const ExchangeRole own_;
  const std::unique_ptr<Monitor> monitor_;  // guards what follows
  std::map<ExchangeObjectName, Held> held_;
  std::map<ExchangeObjectName, Awaited> awaited_;
};

}  // namespace lambdadnn
