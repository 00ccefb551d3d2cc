// SPDX-License-Identifier: Apache-2.0
// Who writes and who reads each object that an iteration exchanges, and which roles meet because of
// it. Pure functions of the plan: writer and reader compute the same answer without communication.
#pragma once

#include <compare>
#include <vector>

#include "common/plan/plan.h"

namespace lambdadnn {

enum class ExchangeKind { kGradient, kWeights, kNorms };

// What of an object's name decides who its writer and its readers are: the iteration does not.
struct ExchangeObject {
  ExchangeKind kind = ExchangeKind::kGradient;
  int layer = 0;  // of the writer: 0 = worker, L = root
  int shard = 0;
  int index = 0;  // of the writer in its layer
  friend bool operator==(const ExchangeObject&, const ExchangeObject&) = default;
};

// A role of the exchange, in an order from the workers up. Layer 0: the worker of rank `index`;
// layers 1..L: a server function (ServerPosition).
struct ExchangeRole {
  int layer = 0;
  int index = 0;
  int group = 0;
  friend auto operator<=>(const ExchangeRole&, const ExchangeRole&) = default;
};

// Whether the plan has such an object at all. The functions below require it.
bool IsExchanged(const AggregationPlan& aggregation, const ExchangeObject& object);
// Whether the plan has such a role.
bool IsRoleOf(const AggregationPlan& aggregation, const ExchangeRole& role);

ExchangeRole WriterOf(const AggregationPlan& aggregation, const ExchangeObject& object);
// Ascending. Norms are read by all other roots; there are none without spread.
std::vector<ExchangeRole> ReadersOf(const AggregationPlan& aggregation,
                                    const ExchangeObject& object);

// The roles that write what `role` reads, or read what it writes. Ascending.
std::vector<ExchangeRole> MeetsWith(const AggregationPlan& aggregation, const ExchangeRole& role);

// Functions, each by the first of its roles: where servers are dedicated, every role has one of its
// own; where workers serve, a worker and the servers beside it are one (geometry.h, HostOf).
ExchangeRole FunctionOf(const AggregationPlan& aggregation, const ExchangeRole& role);
// Those that read the object and are not its writer's own. Ascending.
std::vector<ExchangeRole> FunctionsReading(const AggregationPlan& aggregation,
                                           const ExchangeObject& object);
// Those of whose roles one meets a role of `function`; itself is not among them. Ascending.
std::vector<ExchangeRole> FunctionsMeeting(const AggregationPlan& aggregation,
                                           const ExchangeRole& function);
// Of two functions that meet, the lower one opens their connection: workers, which may be started
// anew in the midst of a round at an address that nobody knows, connect to servers, which may not.
inline bool OpensConnection(const ExchangeRole& from, const ExchangeRole& to) { return from < to; }

}  // namespace lambdadnn
