// SPDX-License-Identifier: Apache-2.0
#include "common/json/memory_field.h"

#include "common/base/quantity.h"

namespace lambdadnn {
namespace {

template <typename T>
bool Read(JsonReader& reader, std::string_view name, Result<T> (*parse)(std::string_view), T* out) {
  const Json* value = reader.Child(name);
  if (value == nullptr) return false;
  if (!value->is_string()) {
    reader.Report(name, "must be an amount of memory in quotes, such as \"1728Mi\"");
    return false;
  }
  const Result<T> memory = parse(value->get_ref<const std::string&>());
  if (!memory.ok()) {
    reader.Report(name, memory.status().message());
    return false;
  }
  *out = *memory;
  return true;
}

}  // namespace

bool ReadMemoryMib(JsonReader& reader, std::string_view name, int* out) {
  return Read<int>(reader, name, ParseMemoryMib, out);
}

bool RequireMemoryMib(JsonReader& reader, std::string_view name, int* out) {
  return reader.Has(name) ? ReadMemoryMib(reader, name, out) : reader.Required(name, out);
}

bool ReadMebibytes(JsonReader& reader, std::string_view name, double* out) {
  return Read<double>(reader, name, ParseMebibytes, out);
}

void PutMemoryMib(Json* json, const char* name, int memory_mib) {
  if (memory_mib > 0) (*json)[name] = FormatMemoryMib(memory_mib);
}

}  // namespace lambdadnn
