// SPDX-License-Identifier: Apache-2.0
// The transport of a function with several roles (Placement::kWorkers): what its roles hand to each
// other stays in its memory, as no object; everything else goes through another transport. What is
// read here and elsewhere goes both ways. Requests that are left are HostIterationCost
// (common/plan/collective_cost.h).
//
// Memory: a copy of each payload from its push until the last role here has pulled it.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "common/base/runtime.h"
#include "common/plan/plan.h"
#include "trainer_function/transport/interrupt.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

class LoopbackTransport final : public Transport {
 public:
  // Of the function of worker `rank`. All must outlive this.
  LoopbackTransport(Runtime& runtime, Interrupt& interrupt, Transport& others,
                    const AggregationPlan& aggregation, int rank);

  Status Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
              ByteView payload) override;
  Result<ReceivedObject> Pull(const ExchangeObjectName& name, Range elements) override;
  Status Discard(std::span<const ExchangeObjectName> names) override;

 private:
  using Key = std::tuple<ObjectKind, int64_t, int, int, int>;
  static Key KeyOf(const ExchangeObjectName& name);
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

  Clock& clock_;
  Interrupt& interrupt_;
  Transport& others_;
  const AggregationPlan& aggregation_;
  const int rank_;
  const std::unique_ptr<Monitor> monitor_;  // guards what follows
  std::map<Key, Held> held_;
};

}  // namespace lambdadnn
