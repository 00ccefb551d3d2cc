// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/otlp_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace lambdadnn {
namespace {

using testing::MatchesRegex;

Span Example() {
  Span span;
  span.trace_id = TraceIdOf("7b1e0d7e-0c0e-4d0a-9c1f-3f1d5a5e9f00");
  span.span_id = SpanIdOf(span.trace_id, "slice/a");
  span.parent_span_id = SpanIdOf(span.trace_id, "job");
  span.name = "slice";
  span.start = WallTime(std::chrono::nanoseconds(1'700'000'000'000'000'001));
  span.end = WallTime(std::chrono::nanoseconds(1'700'000'001'500'000'000));
  span.Add("lambdadnn.role", "worker-3");
  span.Add("lambdadnn.incarnation", int64_t{9'007'199'254'740'993});
  span.Add("lambdadnn.job.cost", 0.25);
  span.attributes.push_back({"faas.coldstart", true});
  return span;
}

// As opentelemetry-proto's JSON encoding has it, field by field.
TEST(OtlpJson, IsAnExportTraceServiceRequest) {
  const Span span = Example();
  const Json encoded =
      EncodeSpans({{"service.name", "operator"}}, {"lambdadnn-operator", "1.2.3"}, {&span, 1});
  EXPECT_EQ(encoded, Json::parse(R"({"resourceSpans": [{
    "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "operator"}}]},
    "scopeSpans": [{"scope": {"name": "lambdadnn-operator", "version": "1.2.3"}, "spans": [{
      "traceId": "7b1e0d7e0c0e4d0a9c1f3f1d5a5e9f00",
      "spanId": ")" + span.span_id +
                                 R"(",
      "parentSpanId": ")" + span.parent_span_id +
                                 R"(",
      "name": "slice",
      "kind": 1,
      "startTimeUnixNano": "1700000000000000001",
      "endTimeUnixNano": "1700000001500000000",
      "attributes": [
        {"key": "lambdadnn.role", "value": {"stringValue": "worker-3"}},
        {"key": "lambdadnn.incarnation", "value": {"intValue": "9007199254740993"}},
        {"key": "lambdadnn.job.cost", "value": {"doubleValue": 0.25}},
        {"key": "faas.coldstart", "value": {"boolValue": true}}]}]}]}]})"));
}

TEST(OtlpJson, OnlyWhatFailedHasAStatusAndOnlyARootHasNoParent) {
  Span span = Example();
  span.failed = true;
  span.parent_span_id = "";
  const Json encoded = EncodeSpans({}, {}, {&span, 1});
  const Json& of = encoded["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
  EXPECT_EQ(of["status"], Json::parse(R"({"code": 2})"));
  EXPECT_FALSE(of.contains("parentSpanId"));
}

TEST(OtlpJson, OddValuesStayValid) {
  Span span = Example();
  span.attributes.clear();
  span.end = span.start - std::chrono::seconds(1);
  span.Add("empty", "");
  span.Add("long", std::string(255, 'a') + "\xc3\xa4");
  span.Add("infinite", std::numeric_limits<double>::infinity());
  span.Add("none", std::numeric_limits<double>::quiet_NaN());
  const Json encoded = EncodeSpans({}, {}, {&span, 1});
  const Json& of = encoded["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
  EXPECT_EQ(of["endTimeUnixNano"], of["startTimeUnixNano"]);
  // No half of a character.
  EXPECT_EQ(of["attributes"],
            Json::array({{{"key", "long"}, {"value", {{"stringValue", std::string(255, 'a')}}}}}));
  span.start = span.end = WallTime(std::chrono::seconds(-1));
  EXPECT_EQ(
      EncodeSpans({}, {},
                  {&span, 1})["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["startTimeUnixNano"],
      "0");
}

TEST(OtlpJson, IdsFollowFromWhatASpanIsAbout) {
  EXPECT_EQ(TraceIdOf("00000000-0000-4000-8000-000000000001"), "00000000000040008000000000000001");
  for (const char* subject : {"", "x", "00000000-0000-0000-0000-000000000000",
                              "7B1E0D7E-0C0E-4D0A-9C1F-3F1D5A5E9F00", "7b1e0d7e"}) {
    const std::string id = TraceIdOf(subject);
    EXPECT_THAT(id, MatchesRegex("[0-9a-f]{32}")) << subject;
    EXPECT_NE(id, std::string(32, '0')) << subject;
    EXPECT_EQ(id, TraceIdOf(subject));
  }
  EXPECT_NE(TraceIdOf("x"), TraceIdOf("y"));
  EXPECT_THAT(SpanIdOf("t", "job"), MatchesRegex("[0-9a-f]{16}"));
  EXPECT_EQ(SpanIdOf("t", "job"), SpanIdOf("t", "job"));
  EXPECT_NE(SpanIdOf("t", "job"), SpanIdOf("t", "jo"));
  EXPECT_NE(SpanIdOf("t", "job"), SpanIdOf("u", "job"));
}

TEST(OtlpJson, APartialSuccessIsReadAndAnythingElseRejectsNothing) {
  const auto rejected = [](const char* body) { return DecodePartialSuccess(body).rejected; };
  EXPECT_EQ(rejected(R"({"partialSuccess": {"rejectedSpans": "3", "errorMessage": "why"}})"), 3);
  EXPECT_EQ(DecodePartialSuccess(R"({"partialSuccess": {"errorMessage": "why"}})").message, "why");
  EXPECT_EQ(rejected(R"({"partialSuccess": {"rejectedSpans": 3}})"), 3);
  for (const char* body :
       {"", "{}", "[]", "7", "{", R"({"partialSuccess": null})", R"({"partialSuccess": []})",
        R"({"partialSuccess": {"rejectedSpans": "-3"}})",
        R"({"partialSuccess": {"rejectedSpans": "x", "errorMessage": 7}})",
        R"({"partialSuccess": {"rejectedSpans": 1.5}})"}) {
    EXPECT_EQ(rejected(body), 0) << body;
  }
}

}  // namespace
}  // namespace lambdadnn
