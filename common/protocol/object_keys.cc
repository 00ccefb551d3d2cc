// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/object_keys.h"

#include <vector>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

std::string ScopeName(const ExchangeScope& scope) {
  std::string name = "r";
  name += std::to_string(scope.plan_revision);
  name += ".i";
  name += std::to_string(scope.incarnation);
  return name;
}

std::string IterationPrefix(const ExchangeScope& scope, int64_t iteration) {
  return ExchangeScopePrefix(scope) + std::to_string(iteration) + "/";
}

std::string CheckpointPrefix(const ExchangeScope& scope, int64_t iteration) {
  return CheckpointsPrefix(scope.prefix) + std::to_string(iteration) + "/" + ScopeName(scope) + "/";
}

}  // namespace

std::string ExchangePrefix(const std::string& prefix) { return prefix + "/x/"; }

std::string ExchangeScopePrefix(const ExchangeScope& scope) {
  return ExchangePrefix(scope.prefix) + ScopeName(scope) + "/";
}

std::string GradientKey(const ExchangeScope& scope, int64_t iteration, int layer, int shard,
                        int index) {
  return IterationPrefix(scope, iteration) + "g" + std::to_string(layer) + "/s" +
         std::to_string(shard) + "/" + std::to_string(index);
}

std::string WeightsKey(const ExchangeScope& scope, int64_t iteration, int shard) {
  return IterationPrefix(scope, iteration) + "w/s" + std::to_string(shard);
}

std::optional<WeightsShard> WeightsOfKey(const ExchangeScope& scope, std::string_view key) {
  const std::string prefix = ExchangeScopePrefix(scope);
  if (!key.starts_with(prefix)) return std::nullopt;
  const std::vector<std::string> parts = Split(key.substr(prefix.size()), '/');
  if (parts.size() != 3 || parts[1] != "w" || !parts[2].starts_with('s')) return std::nullopt;
  const std::optional<long long> version = ParseInteger(parts[0]);
  const std::optional<long long> shard = ParseInteger(parts[2].substr(1));
  if (!version.has_value() || !shard.has_value()) return std::nullopt;
  return WeightsShard{*version, static_cast<int>(*shard)};
}

std::string NormsKey(const ExchangeScope& scope, int64_t iteration, int shard) {
  return IterationPrefix(scope, iteration) + "n/s" + std::to_string(shard);
}

std::string EvaluationKey(const ExchangeScope& scope, int64_t version, int rank) {
  return IterationPrefix(scope, version) + "e/" + std::to_string(rank);
}

std::string CheckpointsPrefix(const std::string& prefix) { return prefix + "/checkpoints/"; }

std::string CheckpointPartKey(const ExchangeScope& scope, int64_t iteration, int shard) {
  return CheckpointPrefix(scope, iteration) + "s" + std::to_string(shard);
}

std::string CheckpointManifestKey(const ExchangeScope& scope, int64_t iteration) {
  return CheckpointPrefix(scope, iteration) + "manifest.json";
}

std::string RecordsPrefix(const std::string& prefix) { return prefix + "/records/"; }

std::string RecordKey(const std::string& prefix, const std::string& invocation) {
  return RecordsPrefix(prefix) + invocation + ".json";
}

std::string ResultKey(const std::string& prefix, const std::string& name) {
  return prefix + "/results/" + name;
}

}  // namespace lambdadnn
