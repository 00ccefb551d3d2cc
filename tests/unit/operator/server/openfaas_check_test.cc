// SPDX-License-Identifier: Apache-2.0
#include "operator/server/openfaas_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Answers by path.
class FixedAnswers final : public HttpTransport {
 public:
  explicit FixedAnswers(std::map<std::string, std::pair<int, std::string>> answers)
      : answers_(std::move(answers)) {}
  Result<HttpResponse> Send(const HttpRequest& request) override {
    for (const auto& [path, answer] : answers_) {
      if (request.url.find(path) == std::string::npos) continue;
      HttpResponse response;
      response.status = answer.first;
      const ByteView bytes = AsBytes(answer.second);
      response.body.assign(bytes.begin(), bytes.end());
      return response;
    }
    return UnavailableError("connection refused");
  }

 private:
  const std::map<std::string, std::pair<int, std::string>> answers_;
};

std::vector<CheckFinding> Check(std::map<std::string, std::pair<int, std::string>> answers,
                                int max_functions = 0) {
  FixedAnswers transport(std::move(answers));
  OpenFaasGateway gateway(transport,
                          {.endpoint = {.scheme = "http", .host = "gateway", .port = 8080}});
  return CheckGateway(gateway, max_functions);
}

std::pair<int, std::string> Info(const std::string& release) {
  return {200,
          R"({"provider":{"provider":"faas-netes-ce","version":{"release":")" + release + "\"}}}"};
}

TEST(OpenFaasCheck, AGatewayThatAnswersIsTold) {
  const auto findings =
      Check({{"/system/info", Info("0.16.2")}, {"/system/functions", {200, "[]"}}});
  EXPECT_TRUE(AllUsable(findings));
  const std::string text = FormatFindings(findings);
  EXPECT_THAT(text,
              HasSubstr("ok       OpenFaaS: OpenFaaS Community Edition (faas-netes-ce 0.16.2)"));
  EXPECT_THAT(text, HasSubstr("share the namespace openfaas-fn, without network policies"));
  EXPECT_THAT(text, Not(HasSubstr("holds at most")));
}

TEST(OpenFaasCheck, TheEditionsLimitIsToldWithWhatOthersHave) {
  const std::string users = R"([{"name":"a"},{"name":"b","labels":{"lambdadnn.io/job-uid":"u"}}])";
  EXPECT_THAT(FormatFindings(
                  Check({{"/system/info", Info("0.18.17")}, {"/system/functions", {200, users}}})),
              HasSubstr("at most 15 functions, 1 of them of other users"));
  EXPECT_THAT(FormatFindings(
                  Check({{"/system/info", Info("dev")}, {"/system/functions", {200, users}}}, 30)),
              HasSubstr("at most 30 functions"));
}

TEST(OpenFaasCheck, WhatIsWrongIsMissingWithTheNextStep) {
  EXPECT_FALSE(AllUsable(Check({})));
  EXPECT_THAT(
      FormatFindings(Check({{"/", {200, "<html>"}}})),
      HasSubstr("missing  OpenFaaS: http://gateway:8080: what answers there is no gateway"));
  // A gateway may tell of itself without credentials.
  const auto refused =
      Check({{"/system/info", Info("dev")}, {"/system/functions", {401, "invalid credentials"}}});
  EXPECT_FALSE(AllUsable(refused));
  EXPECT_THAT(FormatFindings(refused), HasSubstr("--openfaas-auth-dir"));
}

TEST(OpenFaasCheck, TimeoutsAreGoodTooShortOrNotKnown) {
  ClusterLimits limits;
  EXPECT_EQ(CheckTimeouts(limits).level, CheckFinding::Level::kWarning);
  limits.request_timeout_source = "upstream_timeout";
  limits.request_timeout_seconds = 60;
  EXPECT_EQ(FormatFindings({CheckTimeouts(limits)}),
            "ok       OpenFaaS: requests may take 60 s (upstream_timeout)\n");
  limits.request_timeout_seconds = 1;
  EXPECT_THAT(FormatFindings({CheckTimeouts(limits)}),
              HasSubstr("missing  OpenFaaS: upstream_timeout is 1 s, and a request to a function "
                        "takes up to 2 s; set it to 5 s or more"));
}

}  // namespace
}  // namespace lambdadnn
