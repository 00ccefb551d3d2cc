// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/s3_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using testing::HasSubstr;

S3Context Context(std::string key = "k") {
  return {.method = "GET",
          .endpoint = "http://store:9000",
          .bucket = "b-1",
          .region = "us-east-1",
          .key = std::move(key),
          .now = {}};
}

Status Answer(int http_status, const std::string& code) {
  HttpResponse response;
  response.status = http_status;
  if (!code.empty()) {
    response.body = ToBytes("<Error><Code>" + code + "</Code><Message>why</Message></Error>");
  }
  return S3Status(response, Context());
}

struct Case {
  int http_status;
  std::string code;
  StatusCode expected;
  std::string says;
};

TEST(S3Errors, EveryRefusalHasItsCodeAndNextStep) {
  const std::vector<Case> cases = {
      {404, "NoSuchBucket", StatusCode::kNotFound, "create it"},
      {404, "NoSuchKey", StatusCode::kNotFound, "no object 'k' of bucket 'b-1'"},
      {404, "", StatusCode::kNotFound, "no object 'k'"},
      {403, "InvalidAccessKeyId", StatusCode::kUnauthenticated, "access key is unknown"},
      {403, "SignatureDoesNotMatch", StatusCode::kUnauthenticated, "secret key does not fit"},
      {400, "ExpiredToken", StatusCode::kUnauthenticated, "expired"},
      {401, "", StatusCode::kUnauthenticated, "credentials"},
      {403, "AccessDenied", StatusCode::kPermissionDenied, "right"},
      {403, "RequestTimeTooSkewed", StatusCode::kFailedPrecondition, "NTP"},
      {301, "PermanentRedirect", StatusCode::kFailedPrecondition, "region"},
      {400, "AuthorizationHeaderMalformed", StatusCode::kFailedPrecondition, "region"},
      {503, "SlowDown", StatusCode::kUnavailable, "busy"},
      {503, "", StatusCode::kUnavailable, "busy"},
      {500, "InternalError", StatusCode::kUnavailable, "busy"},
      {502, "", StatusCode::kUnavailable, "HTTP 502"},
      {429, "", StatusCode::kUnavailable, "busy"},
      {400, "RequestTimeout", StatusCode::kUnavailable, "busy"},
      {409, "ConditionalRequestConflict", StatusCode::kUnavailable, "busy"},
      {409, "BucketNotEmpty", StatusCode::kFailedPrecondition, "conflicts"},
      {412, "PreconditionFailed", StatusCode::kAlreadyExists, "already there"},
      {507, "", StatusCode::kResourceExhausted, "full"},
      {400, "XMinioStorageFull", StatusCode::kResourceExhausted, "full"},
      {501, "NotImplemented", StatusCode::kUnimplemented, "cannot do that"},
      {405, "MethodNotAllowed", StatusCode::kUnimplemented, "cannot do that"},
      {400, "InvalidRequest", StatusCode::kInvalidArgument, "InvalidRequest: why"}};
  for (const Case& test_case : cases) {
    const Status status = Answer(test_case.http_status, test_case.code);
    EXPECT_EQ(status.code(), test_case.expected)
        << test_case.http_status << " " << test_case.code << ": " << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr(test_case.says));
  }
}

TEST(S3Errors, SkewIsTheDifferenceOfTheClocks) {
  HttpResponse response;
  response.status = 403;
  response.fields = {{"date", "Fri, 24 May 2013 00:20:00 GMT"}};
  response.body = ToBytes("<Error><Code>RequestTimeTooSkewed</Code></Error>");
  S3Context context = Context();
  ASSERT_TRUE(ParseHttpDate("Fri, 24 May 2013 00:00:00 GMT", &context.now));
  EXPECT_THAT(S3Status(response, context).message(), HasSubstr("differ by 1200 s"));
}

TEST(S3Errors, OtherRegionIsNamed) {
  const S3Error error{.code = "PermanentRedirect", .message = "", .key = "", .region = "eu-west-1"};
  EXPECT_THAT(S3Status(error, 301, Context("")).message(),
              HasSubstr("set the region to 'eu-west-1'"));
}

TEST(S3Errors, HugeMessagesAreCut) {
  const S3Error error{.code = "Odd", .message = std::string(100'000, 'm'), .key = "", .region = ""};
  EXPECT_LT(S3Status(error, 400, Context()).message().size(), 1000U);
}

TEST(S3Errors, BadDatesAreRefused) {
  WallTime time;
  for (const std::string_view bad :
       {"", "yesterday", "Fri, 24 May 2013 00:00:00", "Fri, 24 May 2013 00:00:00 GMT+1"}) {
    EXPECT_FALSE(ParseHttpDate(bad, &time)) << bad;
  }
}

}  // namespace
}  // namespace lambdadnn
