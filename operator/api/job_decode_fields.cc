// SPDX-License-Identifier: Apache-2.0
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "common/json/memory_field.h"
#include "operator/api/job_decode.h"

namespace lambdadnn::job_decode {
namespace {

bool ParseDecimal(JsonReader& reader, const char* name, const Json& value, double* out) {
  if (value.is_number()) {
    reader.Report(name,
                  "is a bare number; decimals are text here: write \"" + DumpJson(value) + "\"");
    return false;
  }
  std::optional<double> number;
  if (value.is_string()) number = ParseDouble(value.get_ref<const std::string&>());
  if (!number) {
    reader.Report(name, DumpJson(value) +
                            " is no decimal number, or beyond the range of one; write " +
                            "it like \"0.5\"");
    return false;
  }
  *out = *number;
  return true;
}

}  // namespace

void Decimal(JsonReader& reader, const char* name, double* out) {
  if (const Json* value = reader.Child(name)) ParseDecimal(reader, name, *value, out);
}

void Decimal(JsonReader& reader, const char* name, std::optional<double>* out) {
  double number = 0;
  if (const Json* value = reader.Child(name)) {
    if (ParseDecimal(reader, name, *value, &number)) *out = number;
  }
}

void Time(JsonReader& reader, const char* name, std::optional<WallTime>* out) {
  std::string text;
  WallTime time;
  if (!reader.Optional(name, &text)) return;
  // Whole seconds, as FormatRfc3339 writes them.
  if (!ParseRfc3339(text, &time) || FormatRfc3339(time) != text) {
    reader.Report(name, "must be a time in UTC in quotes, such as \"2026-01-31T12:00:00Z\"");
    return;
  }
  *out = time;
}

void Memory(JsonReader& reader, const char* name, std::optional<int>* out) {
  int memory_mib = 0;
  if (ReadMemoryMib(reader, name, &memory_mib)) *out = memory_mib;
}

void Whole(JsonReader& reader, const char* name, double* out) {
  int64_t number = 0;
  if (reader.Optional(name, &number)) *out = static_cast<double>(number);
}

void Whole(JsonReader& reader, const char* name, std::optional<double>* out) {
  int64_t number = 0;
  if (reader.Optional(name, &number)) *out = static_cast<double>(number);
}

void StringMap(JsonReader& parent, const char* name, std::map<std::string, std::string>* out) {
  const Json* json = parent.Child(name);
  if (json == nullptr) return;
  if (!json->is_object()) return parent.Report(name, "must be a map of text to text");
  for (const auto& [key, value] : json->items()) {
    if (value.is_string()) {
      (*out)[key] = value.get<std::string>();
    } else {
      parent.Report(std::string(name) + "." + key, "must be text; put it in quotes");
    }
  }
}

}  // namespace lambdadnn::job_decode
