// SPDX-License-Identifier: Apache-2.0
#include "operator/api/platform_codec.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/quantity.h"
#include "common/json/amount_field.h"
#include "common/json/memory_field.h"
#include "common/plan/number_fields.h"
#include "operator/api/price_book.h"
#include "operator/api/removed_fields.h"

namespace lambdadnn {
namespace {

// A decimal in its unit's range.
bool ReadAmount(JsonReader* reader, std::string_view name, Unit unit, double* out) {
  double value = 0;
  if (!reader->Optional(name, &value)) return false;
  if (const std::string problem = ProblemOf(value, unit); !problem.empty()) {
    reader->Report(name, problem);
    return false;
  }
  *out = value;
  return true;
}

// "store" of "store.bytesPerSecond", and "bytesPerSecond"; the first is empty without a dot.
std::pair<std::string_view, std::string_view> PartAndName(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

// operator/api/price_book.h has their codec.
bool IsPrice(const PlatformNumber& field) {
  return std::string_view(field.name).starts_with("prices.");
}

// The numbers of one part of the platform; the part itself is read by `reader`.
void ReadNumbers(JsonReader* reader, std::string_view part, Platform* platform) {
  for (const PlatformNumber& field : PlatformNumbers()) {
    const auto [in_part, name] = PartAndName(field.name);
    if (in_part != part) continue;
    double value = 0;
    const bool read = field.unit == Unit::kMib ? ReadMebibytes(*reader, name, &value)
                                               : ReadAmount(reader, name, field.unit, &value);
    if (read) field.Give(platform, value);
  }
}

// The numbers that a run measured, by their names in a platform file: who reads it again should not
// take them for given.
void ReadMeasured(JsonReader* reader, Platform* platform) {
  std::vector<std::string> measured;
  reader->Optional("measured", &measured);
  for (const std::string& name : measured) {
    const auto named = [&](const PlatformNumber& field) { return field.name == name; };
    const auto fields = PlatformNumbers();
    const auto field = std::find_if(fields.begin(), fields.end(), named);
    if (field == fields.end()) {
      reader->Report("measured", "names " + name + ", which is no number of a platform; remove it");
    } else if (const OptionalQuantity number = field->get(*platform); number.known()) {
      field->set(platform, OptionalQuantity(number, Origin::kMeasured));
    }
  }
}

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
  ReadNumbers(&reader, "function", platform);
  if (const Json* store = reader.Child("storeBytesPerSecond")) {
    if (store->is_object()) {
      JsonReader line(*store, reader.PathOf("storeBytesPerSecond"), errors);
      line.Optional("slope", &platform->function_store_slope);
      line.Optional("intercept", &platform->function_store_intercept);
      line.Finish();
    } else {
      ReadAmount(&reader, "storeBytesPerSecond", Unit::kBytesPerSecond,
                 &platform->function_store_intercept);
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
  ReadNumbers(&reader, "", &platform);
  reader.Optional("quotaWhileStarting", &platform.quota_while_starting);
  Count(&reader, "maxFunctions", &platform.max_functions);
  if (const Json* function = reader.Child("function")) {
    DecodeFunction(*function, reader.PathOf("function"), errors, &platform);
    const std::string problem = ProblemOfStoreLine(platform);
    if (!problem.empty()) {
      errors->push_back({reader.PathOf("function") + ".storeBytesPerSecond", problem});
    }
  }
  for (const char* const part : {"parameterServer", "store"}) {
    const Json* const value = reader.Child(part);
    if (value == nullptr) continue;
    JsonReader nested(*value, reader.PathOf(part), errors);
    ReadNumbers(&nested, part, &platform);
    nested.Finish();
  }
  if (const Json* prices = reader.Child("prices")) {
    platform.prices = DecodePriceBook(*prices, reader.PathOf("prices"), errors);
  }
  ReadMeasured(&reader, &platform);
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
  Json json = {
      {"memory",
       {{"min", FormatMemoryMib(platform.memory.min_mib)},
        {"max", FormatMemoryMib(platform.memory.max_mib)},
        {"step", FormatMemoryMib(platform.memory.step_mib)}}},
      {"quotaWhileStarting", platform.quota_while_starting},
      {"maxFunctions", platform.max_functions},
  };
  for (const PlatformNumber& field : PlatformNumbers()) {
    const OptionalQuantity number = field.get(platform);
    if (!number.known() || IsPrice(field)) continue;
    if (number.origin() == Origin::kMeasured) json["measured"].push_back(field.name);
    const double value = number;
    const auto [part, name] = PartAndName(field.name);
    Json& place = part.empty() ? json : json[std::string(part)];
    if (field.unit == Unit::kMib) {
      place[std::string(name)] = FormatMebibytes(value);
    } else {
      place[std::string(name)] = value;
    }
  }
  Json& store_bandwidth = json["function"]["storeBytesPerSecond"];
  if (platform.function_store_slope != 0) {
    store_bandwidth = {{"slope", platform.function_store_slope},
                       {"intercept", platform.function_store_intercept}};
  } else {
    store_bandwidth = platform.function_store_intercept;
  }
  if (platform.prices != Platform::Prices{}) json["prices"] = PriceBookToJson(platform.prices);
  return json;
}

}  // namespace lambdadnn
