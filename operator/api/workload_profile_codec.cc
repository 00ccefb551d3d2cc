// SPDX-License-Identifier: Apache-2.0
#include "operator/api/workload_profile_codec.h"

#include <cmath>

#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/json/memory_field.h"

namespace lambdadnn {
namespace {

struct DecimalField {
  const char* name;
  double WorkloadProfile::* member;
};

constexpr DecimalField kDecimals[] = {
    {"iterationOverheadSeconds", &WorkloadProfile::iteration_overhead_seconds},
    {"mergeBytesPerSecond", &WorkloadProfile::merge_bytes_per_second},
    {"coldStartSeconds", &WorkloadProfile::cold_start_seconds},
    {"releaseSeconds", &WorkloadProfile::release_seconds},
    {"sliceOverheadSeconds", &WorkloadProfile::slice_overhead_seconds},
    {"checkpointSeconds", &WorkloadProfile::checkpoint_seconds},
    {"iterationCpuSeconds", &WorkloadProfile::iteration_cpu_seconds},
    {"startCpuSeconds", &WorkloadProfile::start_cpu_seconds},
    {"loadCpuSecondsPerSample", &WorkloadProfile::load_cpu_seconds_per_sample},
    {"updateCpuSecondsPerByte", &WorkloadProfile::update_cpu_seconds_per_byte},
    {"finishCpuSeconds", &WorkloadProfile::finish_cpu_seconds},
    {"storeBytesPerSecond", &WorkloadProfile::store_bytes_per_second},
    {"storeRequestSeconds", &WorkloadProfile::store_request_seconds},
    {"storeDeviationSeconds", &WorkloadProfile::store_deviation_seconds},
    {"workerBytesPerSample", &WorkloadProfile::worker_bytes_per_sample},
    {"residual", &WorkloadProfile::residual},
};

struct TransferField {
  const char* name;
  double TransferCpu::* member;
};

constexpr TransferField kTransfer[] = {
    {"pushCpuSeconds", &TransferCpu::push_seconds},
    {"pushCpuSecondsPerByte", &TransferCpu::push_seconds_per_byte},
    {"pullCpuSeconds", &TransferCpu::pull_seconds},
    {"pullCpuSecondsPerByte", &TransferCpu::pull_seconds_per_byte},
};

constexpr DecimalField kWholes[] = {
    {"trainingBytes", &WorkloadProfile::training_bytes},
    {"modelBytes", &WorkloadProfile::model_bytes},
    {"evaluationSamples", &WorkloadProfile::evaluation_samples},
};

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
  for (const DecimalField& field : kWholes) {
    int64_t number = 0;
    if (reader.Optional(field.name, &number)) profile.*field.member = static_cast<double>(number);
  }
  for (const DecimalField& field : kDecimals) reader.Optional(field.name, &(profile.*field.member));
  ReadMebibytes(reader, "workerBaseMemory", &profile.worker_base_memory_mib);
  for (const TransferField& field : kTransfer) {
    reader.Optional(field.name, &(profile.transfer.*field.member));
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
  for (const DecimalField& field : kWholes) {
    if (profile.*field.member != 0) json[field.name] = std::llround(profile.*field.member);
  }
  for (const DecimalField& field : kDecimals) {
    if (profile.*field.member != 0) json[field.name] = FormatDouble(profile.*field.member);
  }
  if (profile.worker_base_memory_mib > 0) {
    json["workerBaseMemory"] = FormatMebibytes(profile.worker_base_memory_mib);
  }
  for (const TransferField& field : kTransfer) {
    const double value = profile.transfer.*field.member;
    if (value != 0) json[field.name] = FormatDouble(value);
  }
  if (profile.evaluation_rate != TrainingRate{}) {
    json["evaluationRate"] = EncodeRate(profile.evaluation_rate);
  }
  return json;
}

}  // namespace lambdadnn
