// SPDX-License-Identifier: Apache-2.0
// Spans of OpenTelemetry traces as plain values. Ids follow from what a span is about, so that a
// span that is sent again, by another process, too, is the same one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/clock.h"

namespace lambdadnn {

struct SpanAttribute {
  std::string key;
  std::variant<std::string, int64_t, double, bool> value;
  friend bool operator==(const SpanAttribute&, const SpanAttribute&) = default;
};

// One that has ended.
struct Span {
  std::string trace_id;        // 32 hex digits
  std::string span_id;         // 16 hex digits
  std::string parent_span_id;  // empty: the root of its trace
  std::string name;            // of few values; what differs is in the attributes
  WallTime start{};
  WallTime end{};
  std::vector<SpanAttribute> attributes;
  bool failed = false;

  // An empty text is left out.
  void Add(std::string key, std::string value);
  void Add(std::string key, int64_t value) { attributes.push_back({std::move(key), value}); }
  void Add(std::string key, double value) { attributes.push_back({std::move(key), value}); }
};

// A UUID without its hyphens; of another subject a hash.
std::string TraceIdOf(std::string_view subject);
// Of the span `key` ("slice/…") of a trace.
std::string SpanIdOf(std::string_view trace_id, std::string_view key);

}  // namespace lambdadnn
