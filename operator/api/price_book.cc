// SPDX-License-Identifier: Apache-2.0
#include "operator/api/price_book.h"

#include <algorithm>

#include "common/base/quantity.h"
#include "common/json/amount_field.h"
#include "common/json/memory_field.h"
#include "common/plan/money.h"

namespace lambdadnn {
namespace {

constexpr double kMilliPerCore = 1000;

bool IsCurrency(const std::string& text) {
  constexpr size_t kLetters = 3;  // ISO 4217
  return text.size() == kLetters &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

void ReadCurrency(JsonReader& reader, std::string* currency) {
  if (!reader.Has("currency")) {
    (void)reader.Child("currency");
    reader.Report("currency", "is required; add the one of these prices, such as EUR");
  } else if (reader.Optional("currency", currency) && !IsCurrency(*currency)) {
    reader.Report("currency", "must be three capital letters, such as EUR");
  }
}

void ReadTime(JsonReader& reader, const char* name, std::optional<WallTime>* out) {
  std::string text;
  WallTime time;
  if (!reader.Optional(name, &text)) return;
  if (!ParseRfc3339(text, &time)) {
    reader.Report(name, "must be a time in UTC, such as 2026-01-31T12:00:00Z");
    return;
  }
  *out = time;
}

Platform::Prices::NodeHour DecodeNodeHour(const Json& json, const std::string& path,
                                          std::vector<FieldError>* errors) {
  Platform::Prices::NodeHour node;
  JsonReader reader(json, path, errors);
  double cores = 0;
  ReadAmount(reader, "price", &node.price);
  ReadAmount(reader, "cores", &cores);
  ReadMebibytes(reader, "memory", &node.memory_mib);
  node.milli_cpu = cores * kMilliPerCore;
  reader.Finish();
  if (json.is_object() && (cores <= 0 || node.memory_mib <= 0)) {
    reader.Report(cores <= 0 ? "cores" : "memory",
                  "must be above 0: what functions can have of the node");
  }
  return node;
}

}  // namespace

Platform::Prices DecodePriceBook(const Json& json, const std::string& path,
                                 std::vector<FieldError>* errors) {
  Platform::Prices prices;
  JsonReader reader(json, path, errors);
  if (!json.is_object()) return prices;
  ReadCurrency(reader, &prices.currency);
  ReadTime(reader, "validFrom", &prices.valid_from);
  ReadTime(reader, "validUntil", &prices.valid_until);
  ReadAmount(reader, "gibSecond", &prices.gib_second);
  ReadAmount(reader, "vcpuSecond", &prices.vcpu_second);
  ReadAmount(reader, "gpuSecond", &prices.gpu_second);
  ReadAmount(reader, "request", &prices.put_request);  // one price for both verbs
  prices.get_request = prices.put_request;
  ReadAmount(reader, "putRequest", &prices.put_request);
  ReadAmount(reader, "getRequest", &prices.get_request);
  ReadAmount(reader, "invocation", &prices.invocation);
  if (const Json* node = reader.Child("nodeHour")) {
    prices.node_hour = DecodeNodeHour(*node, reader.PathOf("nodeHour"), errors);
  }
  reader.Finish();
  if (prices.node_hour.price > 0 && (prices.gib_second > 0 || prices.vcpu_second > 0)) {
    reader.Report("nodeHour",
                  "prices functions, and so do gibSecond and vcpuSecond; remove one of the two (in "
                  "Helm values: set it to null)");
  }
  if (prices.valid_from && prices.valid_until && *prices.valid_until <= *prices.valid_from) {
    reader.Report("validUntil", "must be later than validFrom");
  }
  return prices;
}

Result<Platform::Prices> PriceBookFromJson(const Json& json) {
  std::vector<FieldError> errors;
  Platform::Prices prices = DecodePriceBook(json, "", &errors);
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  return prices;
}

Json PriceBookToJson(const Platform::Prices& prices) {
  const bool named = !prices.currency.empty();
  Json json = {{"currency", named ? prices.currency : std::string(kUsDollar)},
               {"gibSecond", prices.gib_second},
               {"vcpuSecond", prices.vcpu_second},
               {"putRequest", prices.put_request},
               {"getRequest", prices.get_request},
               {"invocation", prices.invocation}};
  if (prices.gpu_second > 0) json["gpuSecond"] = prices.gpu_second;
  if (prices.valid_from) json["validFrom"] = FormatRfc3339(*prices.valid_from);
  if (prices.valid_until) json["validUntil"] = FormatRfc3339(*prices.valid_until);
  const Platform::Prices::NodeHour& node = prices.node_hour;
  if (node.milli_cpu > 0) {
    json["nodeHour"] = {{"price", node.price},
                        {"cores", node.milli_cpu / kMilliPerCore},
                        {"memory", FormatMebibytes(node.memory_mib)}};
  }
  return json;
}

std::optional<FieldError> OutOfForce(const Platform::Prices& prices, const std::string& path,
                                     WallTime now) {
  const std::string at = path.empty() ? "" : path + ".";
  if (prices.valid_until && now >= *prices.valid_until) {
    return FieldError{at + "validUntil", "this price book was valid until " +
                                             FormatRfc3339(*prices.valid_until) +
                                             "; give today's prices and until when they count"};
  }
  if (prices.valid_from && now < *prices.valid_from) {
    return FieldError{at + "validFrom", "this price book is valid from " +
                                            FormatRfc3339(*prices.valid_from) +
                                            " on; give the one that counts now"};
  }
  return std::nullopt;
}

}  // namespace lambdadnn
