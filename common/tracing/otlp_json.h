// SPDX-License-Identifier: Apache-2.0
// Spans as OTLP has them in JSON (opentelemetry-proto, trace/v1, "JSON Protobuf Encoding"): names
// in lowerCamelCase, ids in hex, times and whole numbers as decimal text. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/json/json_reader.h"
#include "common/tracing/span.h"

namespace lambdadnn {

// The instrumentation scope.
struct SpanScope {
  std::string name;
  std::string version;
};

// An ExportTraceServiceRequest. Texts are cut at 256 bytes; numbers that are not finite are left
// out.
Json EncodeSpans(const std::vector<SpanAttribute>& resource, const SpanScope& scope,
                 std::span<const Span> spans);

// Of an ExportTraceServiceResponse.
struct PartialSuccess {
  int64_t rejected = 0;
  std::string message;
};
// What is no such response rejected nothing.
PartialSuccess DecodePartialSuccess(std::string_view body);

}  // namespace lambdadnn
