// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/otlp_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using Variables = std::map<std::string, std::string>;

constexpr const char* kEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";
constexpr const char* kTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

Result<std::optional<OtlpSettings>> Read(const Variables& variables) {
  return OtlpSettingsOf(
      [&](const std::string& name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      {{"service.name", "operator"}, {"service.version", "1"}});
}

OtlpSettings Settings(Variables variables) {
  variables.try_emplace(kEndpoint, "http://collector:4318");
  auto settings = Read(variables);
  EXPECT_TRUE(settings.ok() && settings->has_value()) << settings.status().ToString();
  return settings.ok() && settings->has_value() ? **settings : OtlpSettings{};
}

TEST(OtlpSettings, WithoutAnEndpointNothingIsSent) {
  for (const Variables& variables :
       {Variables{}, Variables{{kEndpoint, ""}}, Variables{{kEndpoint, " "}},
        Variables{{"OTEL_SERVICE_NAME", "x"}},
        Variables{{kEndpoint, "http://a"}, {"OTEL_SDK_DISABLED", "True"}},
        Variables{{kEndpoint, "http://a"}, {"OTEL_TRACES_EXPORTER", "none"}}}) {
    const auto settings = Read(variables);
    ASSERT_TRUE(settings.ok()) << settings.status().ToString();
    EXPECT_FALSE(settings->has_value());
  }
  EXPECT_EQ(Settings({{"OTEL_SDK_DISABLED", "false"}}).url, "http://collector:4318/v1/traces");
}

TEST(OtlpSettings, OnlyTheEndpointOfAllSignalsGetsThePathOfTraces) {
  const auto url = [](const Variables& variables) { return Settings(variables).url; };
  EXPECT_EQ(url({{kEndpoint, "http://a:4318"}}), "http://a:4318/v1/traces");
  EXPECT_EQ(url({{kEndpoint, "https://a/base/"}}), "https://a/base/v1/traces");
  EXPECT_EQ(url({{kTracesEndpoint, "https://a/own"}}), "https://a/own");
  EXPECT_EQ(url({{kTracesEndpoint, "https://a/own/"}}), "https://a/own/");
  EXPECT_EQ(url({{kTracesEndpoint, "http://a:4318"}}), "http://a:4318/");
  EXPECT_EQ(url({{kTracesEndpoint, "http://[::1]:4318/v1/traces"}}), "http://[::1]:4318/v1/traces");
}

TEST(OtlpSettings, HeadersAndTimeoutsOfTracesComeFirst) {
  EXPECT_THAT(Settings({}).headers, ElementsAre());
  EXPECT_EQ(Settings({}).timeout_seconds, 10);
  const OtlpSettings all = Settings({{"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%2Cc, x = y ,"},
                                     {"OTEL_EXPORTER_OTLP_TIMEOUT", "2500"},
                                     {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.crt"}});
  EXPECT_THAT(all.headers, ElementsAre(Pair("api-key", "a b,c"), Pair("x", "y")));
  EXPECT_EQ(all.timeout_seconds, 2.5);
  EXPECT_EQ(all.ca_file, "/ca.crt");
  const OtlpSettings own = Settings({{"OTEL_EXPORTER_OTLP_HEADERS", "a=1"},
                                     {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "b=2"},
                                     {"OTEL_EXPORTER_OTLP_TIMEOUT", "1000"},
                                     {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "3000"}});
  EXPECT_THAT(own.headers, ElementsAre(Pair("b", "2")));
  EXPECT_EQ(own.timeout_seconds, 3);
}

TEST(OtlpSettings, TheServiceNameComesBeforeResourceAttributes) {
  using Attributes = std::vector<SpanAttribute>;
  EXPECT_EQ(Settings({}).resource,
            (Attributes{{"service.name", "operator"}, {"service.version", "1"}}));
  EXPECT_EQ(Settings({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=b,k8s.pod.name=p%2F1"}}).resource,
            (Attributes{{"service.version", "1"}, {"service.name", "b"}, {"k8s.pod.name", "p/1"}}));
  EXPECT_EQ(Settings({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=b"}, {"OTEL_SERVICE_NAME", "c"}})
                .resource,
            (Attributes{{"service.version", "1"}, {"service.name", "c"}}));
}

TEST(OtlpSettings, WhatIsInvalidNamesTheVariableAndNoSecret) {
  const std::pair<const char*, const char*> kRows[] = {
      {kEndpoint, "collector:4318"},
      {kEndpoint, "ftp://secret"},
      {kEndpoint, "http://"},
      {kEndpoint, "http://user:secret@a:4318"},
      {kEndpoint, "http://a:4318?token=secret"},
      {kEndpoint, "http://a:99999"},
      {kTracesEndpoint, "a/v1/traces"},
      {"OTEL_EXPORTER_OTLP_HEADERS", "secret"},
      {"OTEL_EXPORTER_OTLP_HEADERS", "=secret"},
      {"OTEL_EXPORTER_OTLP_HEADERS", "a b=secret"},
      {"OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0D%0Ab: c"},
      {"OTEL_EXPORTER_OTLP_HEADERS", "a=secret%2"},
      {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "secret"},
      {"OTEL_EXPORTER_OTLP_TIMEOUT", "10s"},
      {"OTEL_EXPORTER_OTLP_TIMEOUT", "0"},
      {"OTEL_EXPORTER_OTLP_TIMEOUT", "-1"},
      {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "600001"},
      {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
      {"OTEL_RESOURCE_ATTRIBUTES", "a"},
      {"OTEL_RESOURCE_ATTRIBUTES", "a=%zz"},
  };
  for (const auto& [name, value] : kRows) {
    Variables variables = {{name, value}};
    variables.try_emplace(kEndpoint, "http://a:4318");
    const Status status = Read(variables).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name << "=" << value;
    EXPECT_THAT(status.message(), AllOf(HasSubstr(name), Not(HasSubstr("secret")))) << value;
    // Whoever wants no traces is not bothered.
    EXPECT_TRUE(Read({{name, value}, {"OTEL_SDK_DISABLED", "true"}}).ok());
  }
}

}  // namespace
}  // namespace lambdadnn
