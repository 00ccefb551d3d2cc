// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/otlp_settings.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "common/base/endpoint.h"
#include "common/base/percent_encoding.h"
#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr const char* kEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";
constexpr const char* kTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
constexpr const char* kResourceAttributes = "OTEL_RESOURCE_ATTRIBUTES";
constexpr double kMillisecondsPerSecond = 1000;
constexpr long long kMaxTimeoutMilliseconds = 600'000;

class Environment {
 public:
  explicit Environment(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  std::string Get(const std::string& name) const {
    return std::string(Trim(lookup_(name).value_or("")));
  }
  // The first of a variable for traces alone and the one for all signals that is set: {name,
  // value}.
  std::pair<std::string, std::string> GetOf(const std::string& what) const {
    std::string name = "OTEL_EXPORTER_OTLP_TRACES_" + what;
    std::string value = Get(name);
    if (!value.empty()) return {std::move(name), std::move(value)};
    name = "OTEL_EXPORTER_OTLP_" + what;
    value = Get(name);
    return {std::move(name), std::move(value)};
  }

 private:
  const EnvironmentLookup& lookup_;
};

bool IsToken(std::string_view name) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || kOthers.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool IsFieldValue(std::string_view value) {
  return std::all_of(value.begin(), value.end(),
                     [](unsigned char c) { return c == '\t' || (c >= ' ' && c != 0x7f); });
}

// "key=value,key=value" with percent-encoded values, as W3C Baggage has it.
std::optional<std::vector<std::pair<std::string, std::string>>> ParsePairs(
    const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& entry : Split(text, ',')) {
    if (Trim(entry).empty()) continue;
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const std::string_view key = Trim(std::string_view(entry).substr(0, equals));
    const auto value = PercentDecode(Trim(std::string_view(entry).substr(equals + 1)));
    if (key.empty() || !value.has_value()) return std::nullopt;
    pairs.emplace_back(key, *value);
  }
  return pairs;
}

Result<Endpoint> ReadEndpoint(const std::string& name, const std::string& value) {
  const Status invalid = InvalidArgumentError(
      name +
      ": is no URL of a collector; write http://HOST:4318, and credentials into "
      "OTEL_EXPORTER_OTLP_HEADERS");
  Result<Endpoint> endpoint = ParseEndpoint(value);
  if (!endpoint.ok() || endpoint->host.empty() || !endpoint->user_info.empty()) return invalid;
  if (endpoint->scheme != "http" && endpoint->scheme != "https") return invalid;
  return endpoint;
}

// Nothing = no endpoint is given.
Result<std::string> UrlOf(const Environment& environment) {
  if (const std::string own = environment.Get(kTracesEndpoint); !own.empty()) {
    LDNN_ASSIGN_OR_RETURN(const Endpoint endpoint, ReadEndpoint(kTracesEndpoint, own));
    return own.ends_with('/') || endpoint.path.empty() ? endpoint.Text() + "/" : endpoint.Text();
  }
  const std::string base = environment.Get(kEndpoint);
  if (base.empty()) return std::string();
  LDNN_ASSIGN_OR_RETURN(const Endpoint endpoint, ReadEndpoint(kEndpoint, base));
  return endpoint.Text() + "/v1/traces";
}

Result<HttpFields> HeadersOf(const Environment& environment) {
  const auto [name, value] = environment.GetOf("HEADERS");
  const Status invalid = InvalidArgumentError(
      name + ": must be KEY=VALUE pairs separated by commas, the values percent-encoded");
  const auto pairs = ParsePairs(value);
  if (!pairs.has_value()) return invalid;
  HttpFields fields;
  for (const auto& [key, content] : *pairs) {
    if (!IsToken(key) || !IsFieldValue(content)) return invalid;
    fields.emplace_back(key, content);
  }
  return fields;
}

Result<double> TimeoutOf(const Environment& environment) {
  const auto [name, value] = environment.GetOf("TIMEOUT");
  if (value.empty()) return OtlpSettings{}.timeout_seconds;
  const auto milliseconds = ParseInteger(value);
  if (!milliseconds || *milliseconds < 1 || *milliseconds > kMaxTimeoutMilliseconds) {
    return InvalidArgumentError(name + ": '" + value +
                                "' is no number of milliseconds from 1 to 600000");
  }
  return static_cast<double>(*milliseconds) / kMillisecondsPerSecond;
}

void Set(const std::string& key, const std::string& value, std::vector<SpanAttribute>* resource) {
  std::erase_if(*resource, [&](const SpanAttribute& attribute) { return attribute.key == key; });
  resource->push_back({key, value});
}

Status AddResource(const Environment& environment, std::vector<SpanAttribute>* resource) {
  const auto pairs = ParsePairs(environment.Get(kResourceAttributes));
  if (!pairs.has_value()) {
    return InvalidArgumentError(std::string(kResourceAttributes) +
                                ": must be KEY=VALUE pairs separated by commas, the values "
                                "percent-encoded");
  }
  for (const auto& [key, value] : *pairs) Set(key, value, resource);
  const std::string service = environment.Get("OTEL_SERVICE_NAME");
  if (!service.empty()) Set("service.name", service, resource);
  return OkStatus();
}

}  // namespace

Result<std::optional<OtlpSettings>> OtlpSettingsOf(const EnvironmentLookup& lookup,
                                                   std::vector<SpanAttribute> resource) {
  const Environment environment(lookup);
  if (LowerCase(environment.Get("OTEL_SDK_DISABLED")) == "true" ||
      environment.Get("OTEL_TRACES_EXPORTER") == "none") {
    return std::optional<OtlpSettings>();
  }
  OtlpSettings settings;
  LDNN_ASSIGN_OR_RETURN(settings.url, UrlOf(environment));
  if (settings.url.empty()) return std::optional<OtlpSettings>();
  const auto [name, protocol] = environment.GetOf("PROTOCOL");
  if (protocol == "grpc") {
    return InvalidArgumentError(name +
                                ": grpc is not spoken; set http/json, and the endpoint to the "
                                "collector's port for HTTP, usually 4318");
  }
  LDNN_ASSIGN_OR_RETURN(settings.headers, HeadersOf(environment));
  LDNN_ASSIGN_OR_RETURN(settings.timeout_seconds, TimeoutOf(environment));
  settings.ca_file = environment.GetOf("CERTIFICATE").second;
  LDNN_RETURN_IF_ERROR(AddResource(environment, &resource));
  settings.resource = std::move(resource);
  return std::optional<OtlpSettings>(std::move(settings));
}

}  // namespace lambdadnn
