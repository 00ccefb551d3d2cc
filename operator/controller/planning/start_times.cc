// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning/start_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/statistics.h"
#include "common/json/dump_json.h"
#include "common/json/json_reader.h"
#include "common/plan/number_fields.h"

namespace lambdadnn {
namespace {

constexpr int64_t kStartsForm = 1;
constexpr size_t kMaxNameBytes = 1024;

constexpr const char* kColdStarts = "coldStartSeconds";
constexpr const char* kReleases = "releaseSeconds";

void Push(const std::optional<double>& seconds, std::vector<double>* times) {
  if (!seconds.has_value() || !ProblemOf(*seconds, Unit::kSeconds).empty()) return;
  times->push_back(*seconds);
  if (times->size() > StartRecord::kMaxTimes) times->erase(times->begin());
}

// Whole milliseconds, which Kubernetes does not even tell.
Json EncodeTimes(const std::vector<double>& times) {
  Json json = Json::array();
  for (const double seconds : times) json.push_back(std::round(seconds * 1000) / 1000);
  return json;
}

std::vector<double> ReadTimes(JsonReader& reader, const char* name) {
  std::vector<double> times;
  const Json* const list = reader.Child(name);
  if (list == nullptr) return times;
  if (!list->is_array() || list->size() > StartRecord::kMaxTimes) {
    reader.Report(
        name, "must be a list of at most " + std::to_string(StartRecord::kMaxTimes) + " numbers");
    return times;
  }
  for (const Json& each : *list) {
    // No number is none of a range, either.
    const double seconds =
        each.is_number() ? each.get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (const std::string problem = ProblemOf(seconds, Unit::kSeconds); !problem.empty()) {
      reader.Report(name, problem);
      return times;
    }
    times.push_back(seconds);
  }
  return times;
}

StartRecord::Times DecodeKind(const Json& json, const std::string& path,
                              std::vector<FieldError>* errors) {
  StartRecord::Times times;
  JsonReader reader(json, path, errors);
  std::string backend;
  reader.Required("backend", &backend);
  const std::optional<BackendKind> known = FindBackend(backend);
  if (!known.has_value()) reader.Report("backend", "is none that this version knows");
  times.kind.backend = known.value_or(BackendKind::kLocal);
  for (const auto& [name, text] :
       {std::pair("image", &times.kind.image), {"nodeKind", &times.kind.node_kind}}) {
    reader.Optional(name, text);
    if (text->size() > kMaxNameBytes) reader.Report(name, "is too long");
  }
  reader.Required("podsAtOnce", &times.kind.pods_at_once);
  times.cold_starts = ReadTimes(reader, kColdStarts);
  times.releases = ReadTimes(reader, kReleases);
  reader.Finish();
  return times;
}

}  // namespace

int PodsAtOnceClass(int pods) {
  constexpr int kMost = 1 << 20;
  int pods_at_once = 1;
  while (pods_at_once < pods && pods_at_once < kMost) pods_at_once *= 2;
  return pods_at_once;
}

Result<StartRecord> StartRecord::Decode(std::string_view text) {
  LDNN_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  std::vector<FieldError> errors;
  JsonReader reader(json, "", &errors);
  int64_t form = 0;
  if (reader.Required("form", &form) && form != kStartsForm) {
    return InvalidArgumentError("it has form " + std::to_string(form) + ", of another version; " +
                                "this one writes form " + std::to_string(kStartsForm));
  }
  StartRecord record;
  const Json* const starts = reader.Child("starts");
  if (starts == nullptr || !starts->is_array() || starts->size() > kMaxKinds) {
    reader.Report("starts", "must be a list of at most " + std::to_string(kMaxKinds));
    return ToStatus(errors);
  }
  for (size_t i = 0; i < starts->size(); ++i) {
    record.kinds_.push_back(DecodeKind((*starts)[i], "starts[" + std::to_string(i) + "]", &errors));
  }
  reader.Finish();
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return record;
}

std::string StartRecord::Encode() const {
  Json starts = Json::array();
  for (const Times& times : kinds_) {
    Json json = {{"backend", BackendName(times.kind.backend)},
                 {"podsAtOnce", times.kind.pods_at_once},
                 {kColdStarts, EncodeTimes(times.cold_starts)},
                 {kReleases, EncodeTimes(times.releases)}};
    if (!times.kind.image.empty()) json["image"] = times.kind.image;
    if (!times.kind.node_kind.empty()) json["nodeKind"] = times.kind.node_kind;
    starts.push_back(std::move(json));
  }
  return DumpJson(Json{{"form", kStartsForm}, {"starts", std::move(starts)}}) + "\n";
}

void StartRecord::Add(const std::vector<StartSample>& samples) {
  for (const StartSample& sample : samples) {
    if (sample.kind.image.size() > kMaxNameBytes || sample.kind.node_kind.size() > kMaxNameBytes) {
      continue;  // no reader would take it
    }
    const auto found = std::find_if(kinds_.begin(), kinds_.end(),
                                    [&](const Times& times) { return times.kind == sample.kind; });
    if (found == kinds_.end()) {
      kinds_.insert(kinds_.begin(), Times{sample.kind, {}, {}});
    } else {
      std::rotate(kinds_.begin(), found, found + 1);
    }
    Push(sample.cold_start_seconds, &kinds_.front().cold_starts);
    Push(sample.release_seconds, &kinds_.front().releases);
  }
  if (kinds_.size() > kMaxKinds) kinds_.resize(kMaxKinds);
}

const StartRecord::Times* StartRecord::Find(const StartKind& kind) const {
  for (const Times& times : kinds_) {
    if (times.kind == kind) return &times;
  }
  return nullptr;
}

void UseStartTimes(const StartRecord& record, const StartKind& kind, WorkloadProfile* profile) {
  const StartRecord::Times* const times = record.Find(kind);
  if (times == nullptr) return;
  if (times->cold_starts.size() >= kLeastStarts) {
    profile->cold_start_seconds = Quantile(times->cold_starts, 0.5);
    profile->cold_start_deviation_seconds = QuartileDeviation(times->cold_starts);
  }
  if (times->releases.size() >= kLeastStarts) {
    profile->release_seconds = Quantile(times->releases, 0.5);
  }
}

int ExpectedPodsAtOnce(const JobSpec& spec, const Platform& platform, int measured) {
  if (!spec.objective.fixed.has_value()) return measured;
  const std::vector<int>& layers = spec.aggregation.layers;
  const int servers = layers.empty() ? 1
                                     : std::accumulate(layers.begin(), layers.end(), 0) *
                                           std::max(1, spec.aggregation.spread.value_or(1));
  const int pods = spec.objective.fixed->functions + servers;
  const int nodes = std::max(1, static_cast<int>(platform.nodes.size()));
  return (pods + nodes - 1) / nodes;
}

}  // namespace lambdadnn
