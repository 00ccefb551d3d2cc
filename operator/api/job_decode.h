// SPDX-License-Identifier: Apache-2.0
// How operator/api reads the scalars of a job out of a JsonReader. Private to job_decode*.cc.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/json/json_reader.h"
#include "operator/api/job.h"

namespace lambdadnn::job_decode {

using Errors = std::vector<FieldError>;

// Decimals are text in this API, since YAML and JSON readers disagree about floats.
void Decimal(JsonReader& reader, const char* name, double* out);
void Decimal(JsonReader& reader, const char* name, std::optional<double>* out);
// A quantity of whole MiB.
void Time(JsonReader& reader, const char* name, std::optional<WallTime>* out);
void Memory(JsonReader& reader, const char* name, std::optional<int>* out);
// Maps of text to text, such as labels.
void StringMap(JsonReader& parent, const char* name, std::map<std::string, std::string>* out);
// Whole numbers that the rest of the code keeps as doubles.
void Whole(JsonReader& reader, const char* name, double* out);
void Whole(JsonReader& reader, const char* name, std::optional<double>* out);

// The parts of spec with most fields; the others are in job_decode.cc.
ModelSpec DecodeModel(const Json& json, Errors* errors);
DatasetSpec DecodeDataset(const Json& json, Errors* errors);
TrainingSpec DecodeTraining(const Json& json, Errors* errors);

}  // namespace lambdadnn::job_decode
