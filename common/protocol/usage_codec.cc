// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/usage_codec.h"

#include <algorithm>

namespace lambdadnn {
namespace {

void ReadSeconds(JsonReader& reader, const char* name, double* seconds) {
  double value = 0;
  if (!reader.Optional(name, &value)) return;
  if (!(value >= 0 && value <= kMostUsageSeconds)) {
    return reader.Report(name, "must be 0 to 1e9 seconds");
  }
  *seconds = value;
}

bool IsRequestCount(int64_t count) { return count >= 0 && count <= kMostUsageRequests; }

PhaseUsage ReadPhaseUsage(const Json& json, const std::string& path,
                          std::vector<FieldError>* errors) {
  PhaseUsage usage;
  JsonReader reader(json, path, errors);
  ReadSeconds(reader, "wallSeconds", &usage.wall_seconds);
  ReadSeconds(reader, "cpuSeconds", &usage.cpu_seconds);
  ReadSeconds(reader, "throttledSeconds", &usage.throttled_seconds);
  int64_t requests = 0;
  if (reader.Optional("requests", &requests)) {
    if (IsRequestCount(requests)) {
      usage.requests = requests;
    } else {
      reader.Report("requests", "must be 0 to 1e15");
    }
  }
  reader.Finish();
  return usage;
}

LatencyHistogram ReadHistogram(const Json& json, const std::string& path,
                               std::vector<FieldError>* errors) {
  LatencyHistogram histogram;
  JsonReader reader(json, path, errors);
  ReadSeconds(reader, "seconds", &histogram.seconds);
  std::vector<int64_t> counts;
  if (reader.Required("counts", &counts)) {
    if (counts.size() != LatencyHistogram::kBuckets ||
        !std::all_of(counts.begin(), counts.end(), IsRequestCount)) {
      reader.Report("counts", "must be " + std::to_string(LatencyHistogram::kBuckets) +
                                  " numbers from 0 to 1e15");
    } else {
      std::copy(counts.begin(), counts.end(), histogram.counts.begin());
    }
  }
  reader.Finish();
  return histogram;
}

}  // namespace

Json PhaseUsagesToJson(const PhaseUsages& usages) {
  Json json = Json::object();
  for (size_t i = 0; i < kPhaseCount; ++i) {
    const PhaseUsage& usage = usages.phases[i];
    json[std::string(kEnumNames<Phase>[i])] = {{"wallSeconds", usage.wall_seconds},
                                               {"cpuSeconds", usage.cpu_seconds},
                                               {"throttledSeconds", usage.throttled_seconds},
                                               {"requests", usage.requests}};
  }
  return json;
}

PhaseUsages ReadPhaseUsages(const Json& json, const std::string& path,
                            std::vector<FieldError>* errors) {
  PhaseUsages usages;
  JsonReader reader(json, path, errors);
  for (size_t i = 0; i < kPhaseCount; ++i) {
    const std::string name(kEnumNames<Phase>[i]);
    const Json* const phase = reader.Child(name);
    if (phase == nullptr) continue;
    if (phase->is_number()) {
      ReadSeconds(reader, name.c_str(), &usages.phases[i].wall_seconds);
    } else {
      usages.phases[i] = ReadPhaseUsage(*phase, reader.PathOf(name), errors);
    }
  }
  // Functions of before told what is push, wait and pull now as one, with wait as a part of it.
  double communicate = 0;
  ReadSeconds(reader, "communicate", &communicate);
  usages[Phase::kPush].wall_seconds +=
      std::max(0.0, communicate - usages[Phase::kWait].wall_seconds);
  reader.Finish();
  return usages;
}

Json LatenciesToJson(const RequestLatencies& latencies) {
  Json json = Json::object();
  for (size_t i = 0; i < kRequestKindCount; ++i) {
    const LatencyHistogram& histogram = latencies.kinds[i];
    json[std::string(kEnumNames<RequestKind>[i])] = {{"seconds", histogram.seconds},
                                                     {"counts", histogram.counts}};
  }
  return json;
}

RequestLatencies ReadLatencies(const Json& json, const std::string& path,
                               std::vector<FieldError>* errors) {
  RequestLatencies latencies;
  JsonReader reader(json, path, errors);
  for (size_t i = 0; i < kRequestKindCount; ++i) {
    const std::string name(kEnumNames<RequestKind>[i]);
    if (const Json* const kind = reader.Child(name)) {
      latencies.kinds[i] = ReadHistogram(*kind, reader.PathOf(name), errors);
    }
  }
  reader.Finish();
  return latencies;
}

}  // namespace lambdadnn
