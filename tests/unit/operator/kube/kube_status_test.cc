// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/kube_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

HttpResponse Answer(int status, const std::string& body) {
  HttpResponse response;
  response.status = status;
  response.body = ToBytes(body);
  return response;
}

std::string StatusBody(const std::string& reason, int code, const std::string& details = "{}") {
  return R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server's words",)"
         R"("reason":")" +
         reason + R"(","details":)" + details + R"(,"code":)" + std::to_string(code) + "}";
}

TEST(KubeStatus, CodesFollowStatusAndReason) {
  const std::vector<std::tuple<int, std::string, StatusCode>> cases = {
      {400, "BadRequest", StatusCode::kInvalidArgument},
      {401, "Unauthorized", StatusCode::kUnauthenticated},
      {403, "Forbidden", StatusCode::kPermissionDenied},
      {404, "NotFound", StatusCode::kNotFound},
      {405, "MethodNotAllowed", StatusCode::kUnimplemented},
      {409, "AlreadyExists", StatusCode::kAlreadyExists},
      {409, "Conflict", StatusCode::kAborted},
      {410, "Expired", StatusCode::kOutOfRange},
      {415, "UnsupportedMediaType", StatusCode::kInvalidArgument},
      {422, "Invalid", StatusCode::kInvalidArgument},
      {429, "TooManyRequests", StatusCode::kUnavailable},
      {500, "InternalError", StatusCode::kUnavailable},
      {503, "ServiceUnavailable", StatusCode::kUnavailable},
      {504, "Timeout", StatusCode::kUnavailable},
      {307, "", StatusCode::kUnknown},
  };
  for (const auto& [code, reason, expected] : cases) {
    const Status status = StatusOfAnswer("get x y", Answer(code, StatusBody(reason, code)));
    EXPECT_EQ(status.code(), expected) << code << reason;
    EXPECT_EQ(status.message(), "get x y: the server's words");
  }
}

TEST(KubeStatus, CausesAreToldOnce) {
  const std::string details =
      R"({"causes":[{"reason":"FieldValueInvalid","message":"must be red","field":"spec.colour"},)"
      R"({"message":"the server's words"}]})";
  EXPECT_EQ(StatusOfAnswer("w", Answer(422, StatusBody("Invalid", 422, details))).message(),
            "w: the server's words; spec.colour: must be red");
}

TEST(KubeStatus, OthersAnswersAreShownInPart) {
  EXPECT_EQ(StatusOfAnswer("w", Answer(502, "<h1>bad\ngateway</h1>")).message(),
            "w: HTTP status 502: <h1>bad gateway</h1>");
  EXPECT_EQ(StatusOfAnswer("w", Answer(502, "")).message(), "w: HTTP status 502");
  EXPECT_EQ(StatusOfAnswer("w", Answer(404, "[1]")).code(), StatusCode::kNotFound);
  EXPECT_LT(StatusOfAnswer("w", Answer(500, std::string(100'000, 'x'))).message().size(), 500u);
}

TEST(KubeStatus, NonsenseInsideAStatusDoesNoHarm) {
  for (const std::string body :
       {R"({"kind":"Status","code":"410","reason":7,"details":[],"message":{}})",
        R"({"kind":"Status","code":99999999999999,"details":{"causes":{"a":1}}})",
        R"({"kind":"Status","details":{"causes":[1,null,{"message":5}]}})"}) {
    EXPECT_EQ(StatusOfAnswer("w", Answer(503, body)).code(), StatusCode::kUnavailable) << body;
  }
}

TEST(KubeStatus, AWatchsErrorObjectCountsByItsOwnCode) {
  const Json expired = {{"kind", "Status"}, {"code", 410}, {"reason", "Expired"}};
  EXPECT_EQ(StatusOfObject("w", expired, 200).code(), StatusCode::kOutOfRange);
  const Json gone = {{"kind", "Status"}, {"reason", "Gone"}};
  EXPECT_EQ(StatusOfObject("w", gone, 500).code(), StatusCode::kOutOfRange);
}

TEST(KubeStatus, RetryAfterComesFromFieldOrObject) {
  HttpResponse response = Answer(429, "");
  EXPECT_EQ(RetryAfter(response), std::nullopt);
  response.fields = {{"retry-after", "3"}};
  EXPECT_EQ(RetryAfter(response), Duration(std::chrono::seconds(3)));
  response.fields = {{"Retry-After", "86400"}};
  EXPECT_EQ(RetryAfter(response), Duration(std::chrono::seconds(60)));
  response.fields = {{"Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"}};
  EXPECT_EQ(RetryAfter(response), std::nullopt);
  response = Answer(503, StatusBody("ServerTimeout", 503, R"({"retryAfterSeconds":2})"));
  EXPECT_EQ(RetryAfter(response), Duration(std::chrono::seconds(2)));
  response = Answer(503, StatusBody("ServerTimeout", 503, R"({"retryAfterSeconds":-2})"));
  EXPECT_EQ(RetryAfter(response), std::nullopt);
}

}  // namespace
}  // namespace lambdadnn
