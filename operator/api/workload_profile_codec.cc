// SPDX-License-Identifier: Apache-2.0
#include "operator/api/workload_profile_codec.h"

#include <cmath>

#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/json/memory_field.h"
#include "common/plan/number_fields.h"

namespace lambdadnn {
namespace {

TrainingRate DecodeRate(const Json& json, const std::string& path,
                        std::vector<FieldError>* errors) {
  TrainingRate rate;
  JsonReader reader(json, path, errors);
  reader.Optional("slope", &rate.slope);
  reader.Optional("intercept", &rate.intercept);
  reader.Optional("maxSamplesPerSecond", &rate.max_samples_per_second);
  if (const Json* table = reader.Child("table")) {
    if (!table->is_array()) reader.Report("table", "must be a list");
    for (size_t i = 0; table->is_array() && i < table->size(); ++i) {
      TrainingRate::Point point;
      JsonReader nested((*table)[i], path + ".table[" + std::to_string(i) + "]", errors);
      int memory_mib = 0;
      RequireMemoryMib(nested, "memory", &memory_mib);
      point.memory_mib = memory_mib;
      nested.Required("samplesPerSecond", &point.samples_per_second);
      nested.Finish();
      if (!rate.table.empty() && point.memory_mib <= rate.table.back().memory_mib) {
        nested.Report("memory", "must grow from point to point; sort the table by memory");
      }
      rate.table.push_back(point);
    }
  }
  reader.Finish();
  return rate;
}

std::vector<WorkloadProfile::StorePoint> DecodeStreams(const Json& json, const std::string& path,
                                                       std::vector<FieldError>* errors) {
  std::vector<WorkloadProfile::StorePoint> points;
  if (!json.is_array()) errors->push_back({path, "must be a list"});
  for (size_t i = 0; json.is_array() && i < json.size(); ++i) {
    JsonReader reader(json[i], path + "[" + std::to_string(i) + "]", errors);
    int streams = 0;
    WorkloadProfile::StorePoint point;
    reader.Required("streams", &streams);
    reader.Required("bytesPerSecond", &point.bytes_per_second);
    reader.Finish();
    point.streams = streams;
    points.push_back(point);
  }
  return points;
}

Json EncodeRate(const TrainingRate& rate) {
  Json json = {{"slope", FormatDouble(rate.slope)}, {"intercept", FormatDouble(rate.intercept)}};
  if (rate.max_samples_per_second) {
    json["maxSamplesPerSecond"] = FormatDouble(*rate.max_samples_per_second);
  }
  for (const TrainingRate::Point& point : rate.table) {
    json["table"].push_back(
        {{"memory", FormatMemoryMib(static_cast<int>(std::lround(point.memory_mib)))},
         {"samplesPerSecond", FormatDouble(point.samples_per_second)}});
  }
  return json;
}

}  // namespace

WorkloadProfile DecodeWorkloadProfile(const Json& json, const std::string& path,
                                      std::vector<FieldError>* errors) {
  WorkloadProfile profile;
  JsonReader reader(json, path, errors);
  reader.Optional("trainingSamples", &profile.training_samples);
  for (const ProfileNumber& field : ProfileWholes()) {
    int64_t number = 0;
    if (reader.Optional(field.name, &number)) field.Give(&profile, static_cast<double>(number));
  }
  for (const ProfileNumber& field : ProfileDecimals()) {
    double number = 0;
    if (reader.Optional(field.name, &number)) field.Give(&profile, number);
  }
  ReadMebibytes(reader, "workerBaseMemory", &profile.worker_base_memory_mib);
  ReadMebibytes(reader, "workerLeastMemory", &profile.worker_least_memory_mib);
  if (const Json* streams = reader.Child("storeStreams")) {
    profile.store_streams = DecodeStreams(*streams, reader.PathOf("storeStreams"), errors);
  }
  if (const Json* rate = reader.Child("trainingRate")) {
    profile.training_rate = DecodeRate(*rate, reader.PathOf("trainingRate"), errors);
  }
  if (const Json* rate = reader.Child("evaluationRate")) {
    profile.evaluation_rate = DecodeRate(*rate, reader.PathOf("evaluationRate"), errors);
  }
  reader.Finish();
  return profile;
}

Json EncodeWorkloadProfile(const WorkloadProfile& profile) {
  Json json = {{"trainingSamples", profile.training_samples},
               {"trainingRate", EncodeRate(profile.training_rate)}};
  for (const ProfileNumber& field : ProfileWholes()) {
    const double value = field.get(profile);
    if (value != 0) json[field.name] = std::llround(value);
  }
  for (const ProfileNumber& field : ProfileDecimals()) {
    const double value = field.get(profile);
    if (value != 0) json[field.name] = FormatDouble(value);
  }
  if (profile.worker_base_memory_mib > 0) {
    json["workerBaseMemory"] = FormatMebibytes(profile.worker_base_memory_mib);
  }
  if (profile.worker_least_memory_mib > 0) {
    json["workerLeastMemory"] = FormatMebibytes(profile.worker_least_memory_mib);
  }
  for (const WorkloadProfile::StorePoint& point : profile.store_streams) {
    json["storeStreams"].push_back({{"streams", std::lround(point.streams)},
                                    {"bytesPerSecond", FormatDouble(point.bytes_per_second)}});
  }
  if (profile.evaluation_rate != TrainingRate{}) {
    json["evaluationRate"] = EncodeRate(profile.evaluation_rate);
  }
  return json;
}

}  // namespace lambdadnn
