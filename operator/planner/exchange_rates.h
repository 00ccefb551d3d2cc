// SPDX-License-Identifier: Apache-2.0
// What a profile says of the CPU time of functions that exchange, by the way that objects travel.
// Pure.
#pragma once

#include "common/plan/exchange_cpu.h"
#include "common/plan/workload.h"

namespace lambdadnn {

// kAssumedDirect where nothing was measured.
DirectTransfer DirectOf(const WorkloadProfile& profile);

// Through the store with a doorbell to each reader, where the profile has some; over connections,
// with a server's time less what it reads from the store. Both as whole exchanges between connected
// functions were measured (RatesOfHosts).
ExchangeRates RatesOf(const WorkloadProfile& profile, TransportKind transport);

}  // namespace lambdadnn
