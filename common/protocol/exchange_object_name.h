// SPDX-License-Identifier: Apache-2.0
// The names of what the functions of a job exchange. Logical, not places: the same object may lie
// in a store or in its writer's memory.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "common/protocol/object_header.h"

namespace lambdadnn {

struct ExchangeObjectName {
  ObjectKind kind = ObjectKind::kGradient;
  int64_t iteration = 0;
  int layer = 0;  // of the writer: 0 = worker, L = root
  int shard = 0;
  int index = 0;  // of the writer in its layer
  friend auto operator<=>(const ExchangeObjectName&, const ExchangeObjectName&) = default;
  // "gradient of iteration 12, shard 0, from worker 3": for messages.
  std::string Brief() const;
};

// One shard of the weights of a version: that many updates were made.
struct WeightsShard {
  int64_t version = 0;
  int shard = 0;
  friend auto operator<=>(const WeightsShard&, const WeightsShard&) = default;
};

}  // namespace lambdadnn
