// SPDX-License-Identifier: Apache-2.0
#include "operator/api/platform_file.h"

#include "common/base/files.h"
#include "common/json/dump_json.h"
#include "common/json/yaml_file.h"
#include "operator/api/platform_codec.h"
#include "operator/api/price_book.h"

namespace lambdadnn {
namespace {

Status RequireInForce(const std::string& file, const Platform::Prices& prices,
                      const std::string& path, WallTime now) {
  const std::optional<FieldError> error = OutOfForce(prices, path, now);
  return error ? ToStatus({*error}).WithContext(file) : OkStatus();
}

// Versions before price books wrote US dollars without saying so, and nothing as zeros.
Result<Platform> SavedPlatformFromJson(const Json& json) {
  Json saved = json;
  if (saved.is_object() && saved.contains("prices") && saved["prices"].is_object() &&
      !saved["prices"].contains("currency")) {
    saved["prices"]["currency"] = "USD";
  }
  return PlatformFromJson(saved);
}

}  // namespace

Result<Platform> ReadPlatform(const std::string& file, WallTime now) {
  LDNN_ASSIGN_OR_RETURN(Platform platform, ReadYamlFileAs(file, PlatformFromJson));
  LDNN_RETURN_IF_ERROR(RequireInForce(file, platform.prices, "prices", now));
  return platform;
}

Result<Platform::Prices> ReadPriceBook(const std::string& file, WallTime now) {
  LDNN_ASSIGN_OR_RETURN(Platform::Prices prices, ReadYamlFileAs(file, PriceBookFromJson));
  LDNN_RETURN_IF_ERROR(RequireInForce(file, prices, "", now));
  return prices;
}

Result<Platform> ReadSavedPlatform(const std::string& file) {
  return ReadYamlFileAs(file, SavedPlatformFromJson);
}

Status WritePlatform(const std::string& file, const Platform& platform) {
  return WriteFileAtomically(file, DumpJson(PlatformToJson(platform), 1) + "\n");
}

}  // namespace lambdadnn
