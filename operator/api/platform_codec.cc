// SPDX-License-Identifier: Apache-2.0
#include "operator/api/platform_codec.h"

#include "common/base/quantity.h"
#include "common/json/amount_field.h"
#include "common/json/memory_field.h"
#include "operator/api/price_book.h"
#include "operator/api/removed_fields.h"

namespace lambdadnn {
namespace {

void Count(JsonReader* reader, const char* name, int* out) {
  int value = 0;
  if (!reader->Optional(name, &value)) return;
  if (value < 1) {
    reader->Report(name, "must be at least 1");
    return;
  }
  *out = value;
}

void DecodeMemory(const Json& json, const std::string& path, std::vector<FieldError>* errors,
                  Platform::Memory* memory) {
  JsonReader reader(json, path, errors);
  ReadMemoryMib(reader, "min", &memory->min_mib);
  ReadMemoryMib(reader, "max", &memory->max_mib);
  ReadMemoryMib(reader, "step", &memory->step_mib);
  if (memory->max_mib < memory->min_mib) reader.Report("max", "must not be below min");
  reader.Finish();
}

// storeBytesPerSecond: a constant, or a line over memory.
void DecodeFunction(const Json& json, const std::string& path, std::vector<FieldError>* errors,
                    Platform* platform) {
  JsonReader reader(json, path, errors);
  ReadAmount(reader, "networkBytesPerSecond", &platform->function_network_bytes_per_second);
  if (const Json* store = reader.Child("storeBytesPerSecond")) {
    if (store->is_object()) {
      JsonReader line(*store, reader.PathOf("storeBytesPerSecond"), errors);
      line.Optional("slope", &platform->function_store_slope);
      line.Optional("intercept", &platform->function_store_intercept);
      line.Finish();
    } else {
      ReadAmount(reader, "storeBytesPerSecond", &platform->function_store_intercept);
    }
  }
  reader.Finish();
}

}  // namespace

Platform DecodePlatform(const Json& json, const std::string& path,
                        std::vector<FieldError>* errors) {
  Platform platform;
  JsonReader reader(json, path, errors);
  if (const Json* memory = reader.Child("memory")) {
    DecodeMemory(*memory, reader.PathOf("memory"), errors, &platform.memory);
  }
  ReadAmount(reader, "milliCpuPerGiB", &platform.milli_cpu_per_gib);
  ReadAmount(reader, "cpuBurstSeconds", &platform.cpu_burst_seconds);
  reader.Optional("quotaWhileStarting", &platform.quota_while_starting);
  ReadAmount(reader, "totalMilliCpu", &platform.total_milli_cpu);
  ReadMebibytes(reader, "totalMemory", &platform.total_memory_mib);
  ReadMebibytes(reader, "sidecarMemory", &platform.sidecar_memory_mib);
  Count(&reader, "maxFunctions", &platform.max_functions);
  ReadAmount(reader, "functionTimeoutSeconds", &platform.function_timeout_seconds);
  if (const Json* function = reader.Child("function")) {
    DecodeFunction(*function, reader.PathOf("function"), errors, &platform);
  }
  if (const Json* server = reader.Child("parameterServer")) {
    JsonReader nested(*server, reader.PathOf("parameterServer"), errors);
    ReadAmount(nested, "networkBytesPerSecond",
               &platform.parameter_server_network_bytes_per_second);
    ReadAmount(nested, "pricePerSecond", &platform.parameter_server_price_per_second);
    nested.Finish();
  }
  if (const Json* store = reader.Child("store")) {
    JsonReader nested(*store, reader.PathOf("store"), errors);
    ReadAmount(nested, "bytesPerSecond", &platform.store_bytes_per_second);
    ReadAmount(nested, "requestSeconds", &platform.store_request_seconds);
    nested.Finish();
  }
  if (const Json* prices = reader.Child("prices")) {
    platform.prices = DecodePriceBook(*prices, reader.PathOf("prices"), errors);
  }
  reader.Finish();
  return platform;
}

Result<Platform> PlatformFromJson(const Json& json) {
  std::vector<FieldError> errors;
  Platform platform;
  if (json.is_object() && json.size() == 1 && json.contains("platform")) {
    platform = DecodePlatform(json["platform"], "platform", &errors);
  } else {
    platform = DecodePlatform(json, "", &errors);
  }
  SayInsteadOfRemovedFields("platform.", &errors);
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return platform;
}

Json PlatformToJson(const Platform& platform) {
  Json store_bandwidth = platform.function_store_intercept;
  if (platform.function_store_slope != 0) {
    store_bandwidth = {{"slope", platform.function_store_slope},
                       {"intercept", platform.function_store_intercept}};
  }
  Json json = {
      {"memory",
       {{"min", FormatMemoryMib(platform.memory.min_mib)},
        {"max", FormatMemoryMib(platform.memory.max_mib)},
        {"step", FormatMemoryMib(platform.memory.step_mib)}}},
      {"milliCpuPerGiB", platform.milli_cpu_per_gib},
      {"cpuBurstSeconds", platform.cpu_burst_seconds},
      {"quotaWhileStarting", platform.quota_while_starting},
      {"totalMilliCpu", platform.total_milli_cpu},
      {"totalMemory", FormatMebibytes(platform.total_memory_mib)},
      {"sidecarMemory", FormatMebibytes(platform.sidecar_memory_mib)},
      {"maxFunctions", platform.max_functions},
      {"functionTimeoutSeconds", platform.function_timeout_seconds},
      {"function",
       {{"networkBytesPerSecond", platform.function_network_bytes_per_second},
        {"storeBytesPerSecond", store_bandwidth}}},
      {"parameterServer",
       {{"networkBytesPerSecond", platform.parameter_server_network_bytes_per_second},
        {"pricePerSecond", platform.parameter_server_price_per_second}}},
      {"store",
       {{"bytesPerSecond", platform.store_bytes_per_second},
        {"requestSeconds", platform.store_request_seconds}}},
  };
  if (platform.prices != Platform::Prices{}) json["prices"] = PriceBookToJson(platform.prices);
  return json;
}

}  // namespace lambdadnn
