// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/otlp_json.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <variant>

#include "common/base/text.h"
#include "common/base/utf8.h"
#include "common/json/json_reader.h"

namespace lambdadnn {
namespace {

constexpr size_t kMaxTextBytes = 256;
// Of the enums in trace.proto.
constexpr int kKindInternal = 1;
constexpr int kStatusError = 2;

std::string Nanoseconds(WallTime time) {
  return std::to_string(std::max<int64_t>(0, time.time_since_epoch().count()));
}

// Null: it has none in JSON.
Json EncodeValue(const SpanAttribute& attribute) {
  return std::visit(
      [](const auto& value) -> Json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return {{"stringValue", CutUtf8(value, kMaxTextBytes)}};
        } else if constexpr (std::is_same_v<T, int64_t>) {
          return {{"intValue", std::to_string(value)}};
        } else if constexpr (std::is_same_v<T, bool>) {
          return {{"boolValue", value}};
        } else {
          return std::isfinite(value) ? Json{{"doubleValue", value}} : Json();
        }
      },
      attribute.value);
}

Json EncodeAttributes(const std::vector<SpanAttribute>& attributes) {
  Json encoded = Json::array();
  for (const SpanAttribute& attribute : attributes) {
    Json value = EncodeValue(attribute);
    if (value.is_null()) continue;
    encoded.push_back({{"key", attribute.key}, {"value", std::move(value)}});
  }
  return encoded;
}

Json EncodeSpan(const Span& span) {
  Json encoded = {{"traceId", span.trace_id},
                  {"spanId", span.span_id},
                  {"name", span.name},
                  {"kind", kKindInternal},
                  {"startTimeUnixNano", Nanoseconds(span.start)},
                  {"endTimeUnixNano", Nanoseconds(std::max(span.start, span.end))},
                  {"attributes", EncodeAttributes(span.attributes)}};
  if (!span.parent_span_id.empty()) encoded["parentSpanId"] = span.parent_span_id;
  if (span.failed) encoded["status"] = {{"code", kStatusError}};
  return encoded;
}

}  // namespace

Json EncodeSpans(const std::vector<SpanAttribute>& resource, const SpanScope& scope,
                 std::span<const Span> spans) {
  Json encoded = Json::array();
  for (const Span& span : spans) encoded.push_back(EncodeSpan(span));
  const Json of_scope = {{"scope", {{"name", scope.name}, {"version", scope.version}}},
                         {"spans", std::move(encoded)}};
  return {{"resourceSpans",
           {{{"resource", {{"attributes", EncodeAttributes(resource)}}},
             {"scopeSpans", Json::array({of_scope})}}}}};
}

PartialSuccess DecodePartialSuccess(std::string_view body) {
  PartialSuccess partial;
  const Result<Json> json = ParseJson(body);
  if (!json.ok() || !json->is_object()) return partial;
  const auto found = json->find("partialSuccess");
  if (found == json->end() || !found->is_object()) return partial;
  // A whole number of 64 bits is a text, but receivers take and send both.
  const Json rejected = found->value("rejectedSpans", Json());
  if (rejected.is_number_integer()) partial.rejected = rejected.get<int64_t>();
  if (rejected.is_string()) {
    partial.rejected = ParseInteger(rejected.get_ref<const std::string&>()).value_or(0);
  }
  partial.rejected = std::max<int64_t>(0, partial.rejected);
  const Json message = found->value("errorMessage", Json());
  if (message.is_string()) partial.message = message.get<std::string>();
  return partial;
}

}  // namespace lambdadnn
