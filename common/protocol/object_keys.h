// SPDX-License-Identifier: Apache-2.0
// The whole key layout of a job (docs/formats.md). Keys are deterministic, so the bucket is never
// listed to find an object. Each key has one writer, which writes the same bytes every time.
//
//   <prefix>/x/r<revision>.i<incarnation>/<iteration>/
//       g<layer>/s<shard>/<index>    gradient of worker <index> (layer 0) or of server <index>
//       w/s<shard>                   weights, input of the iteration
//       n/s<shard>                   block sums of squares of the shard's gradient
//       e/<rank>                     what worker <rank> found of the test set (earlyStopping,
//       keepBest)
//   <prefix>/checkpoints/<iteration>/r<revision>.i<incarnation>/
//       s<shard>                     weights and optimizer state
//       manifest.json                last: makes the checkpoint complete
//   <prefix>/records/<invocation>.json   completion records
//   <prefix>/results/<name>              model, report, logs: stay
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/protocol/exchange_object_name.h"

namespace lambdadnn {

struct ExchangeScope {
  std::string prefix;
  int plan_revision = 1;
  int64_t incarnation = 0;
};

std::string GradientKey(const ExchangeScope& scope, int64_t iteration, int layer, int shard,
                        int index);
std::string WeightsKey(const ExchangeScope& scope, int64_t iteration, int shard);
// What lies under a WeightsKey of that scope; nullopt for any other key.
std::optional<WeightsShard> WeightsOfKey(const ExchangeScope& scope, std::string_view key);
std::string NormsKey(const ExchangeScope& scope, int64_t iteration, int shard);
std::string EvaluationKey(const ExchangeScope& scope, int64_t version, int rank);
std::string CheckpointPartKey(const ExchangeScope& scope, int64_t iteration, int shard);
std::string CheckpointManifestKey(const ExchangeScope& scope, int64_t iteration);
// Everything below ends in '/': what to list or to delete.
std::string CheckpointsPrefix(const std::string& prefix);
std::string ExchangePrefix(const std::string& prefix);
// Of one revision and incarnation.
std::string ExchangeScopePrefix(const ExchangeScope& scope);
std::string RecordKey(const std::string& prefix, const std::string& invocation);
std::string RecordsPrefix(const std::string& prefix);
std::string ResultKey(const std::string& prefix, const std::string& name);

}  // namespace lambdadnn
