// SPDX-License-Identifier: Apache-2.0
// What a job's place in the store says of the job, for an object that was restored from a backup
// (docs/design/020-backup-and-restore.md): whose the place is and what is needed to go on
// (records/job.json, written before each round of slices), and how the job has ended
// (results/report.json). A job's functions may write there: it counts as much as status does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/json/json_reader.h"
#include "common/objectstore/object_store.h"
#include "common/protocol/slice.h"
#include "operator/api/job.h"

namespace lambdadnn {

inline constexpr const char* kReportName = "report.json";
inline constexpr const char* kModelName = "model.safetensors";
inline constexpr const char* kBestModelName = "model-best.safetensors";  // with keepBest

// The parts of spec that checkpoints and results depend on: model, dataset, training.
Json WorkOf(const JobSpec& spec);
// Compared as this version reads both: a field that is absent has its default.
bool IsSameWork(const JobSpec& spec, const Json& work);

// No job falls back so often; more is not believed.
inline constexpr int64_t kMostIncarnations = 1'000'000'000'000;

struct PlaceRecord {
  std::string uid;  // of the object whose functions write here
  Json work;
  JobStatus status;  // plan, planHistory, profile, execution (without functions), usage
};
// `active_seconds` of the job so far.
std::string EncodePlaceRecord(const Job& job, double active_seconds);
// kDataLoss for anything that no operator can have written; any bytes are safe.
Result<PlaceRecord> DecodePlaceRecord(std::string_view text);
std::string PlaceRecordKey(const std::string& prefix);
// nullopt: there is none that can be read. An error is the store's.
Result<std::optional<PlaceRecord>> ReadPlaceRecord(ObjectStore& store, const std::string& prefix);

// Of a report, how the job ended.
struct PlaceOutcome {
  std::string uid;
  Json work;
  bool success = false;
  std::string reason;
  std::string message;
  std::string model_digest;
  std::optional<BestModelStatus> best_model;  // its uri is where it was
};
// The same for results/report.json.
Result<std::optional<PlaceOutcome>> ReadPlaceOutcome(ObjectStore& store, const std::string& prefix);

// What an object that brings its id finds in its place.
enum class PlaceState {
  kEmpty,       // it begins there
  kUnfinished,  // it goes on there
  kFinished,    // it has ended
  kOthers,  // something else is there, or not all that is needed: it begins in a place of its own
};
struct FoundPlace {
  PlaceState state = PlaceState::kEmpty;
  std::string why;                                // of kOthers
  std::optional<PlaceRecord> record;              // always of kUnfinished
  std::optional<PlaceOutcome> outcome;            // of kFinished
  bool model_is_there = false;                    // of kFinished
  std::optional<CheckpointReference> checkpoint;  // of kUnfinished: where to go on; absent = at 0
};

// All but the checkpoint to go on from. An error is the store's.
Result<FoundPlace> LookIntoPlace(ObjectStore& store, const Job& job, const std::string& prefix);

}  // namespace lambdadnn
