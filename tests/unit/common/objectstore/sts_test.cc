// SPDX-License-Identifier: Apache-2.0
// AssumeRole against answers as real servers give them; on real servers in
// operator_credentials_test.
#include "common/objectstore/sts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/runtime.h"
#include "common/objectstore/open_store.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kGiven =
    R"(<?xml version="1.0" encoding="UTF-8"?>
<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<AssumedRoleUser><Arn></Arn></AssumedRoleUser><Credentials><AccessKeyId>AK</AccessKeyId>
<SecretAccessKey>S+/=</SecretAccessKey><SessionToken>T.o.k</SessionToken>
<Expiration>2026-01-31T12:10:00Z</Expiration></Credentials></AssumeRoleResult>
</AssumeRoleResponse>)";
constexpr const char* kDate = "Sat, 31 Jan 2026 12:00:00 GMT";

std::string Refused(const std::string& code, const std::string& message = "why") {
  return "<ErrorResponse><Error><Type></Type><Code>" + code + "</Code><Message>" + message +
         "</Message></Error></ErrorResponse>";
}

// Answers in turn, the last one again and again.
class Server final : public HttpTransport {
 public:
  void Then(int status, const std::string& body, const std::string& date = kDate) {
    HttpResponse response;
    response.status = status;
    response.body = ToBytes(body);
    if (!date.empty()) response.fields = {{"Date", date}};
    answers_.push_back(std::move(response));
  }
  Result<HttpResponse> Send(const HttpRequest& request) override {
    requests.push_back(request);
    bodies.emplace_back(AsText(request.body.at(0)));
    return answers_[std::min(requests.size(), answers_.size()) - 1];
  }
  std::vector<HttpRequest> requests;
  std::vector<std::string> bodies;

 private:
  std::vector<HttpResponse> answers_;
};

class FixedClock final : public Clock {
 public:
  Instant Now() override { return {}; }
  WallTime Wall() override {
    WallTime time;
    ParseRfc3339("2026-01-31T12:00:00Z", &time);
    return time + FromSeconds(shift_seconds);
  }
  void SleepFor(Duration) override {}
  double shift_seconds = 0;
};

class StsTest : public testing::Test {
 protected:
  Result<TemporaryCredentials> Ask(int seconds = 900, const std::string& role_arn = "") {
    S3Options options;
    options.endpoint = "http://store:9000/";
    options.bucket = "bucket";
    options.credentials = {"parent", "parent-secret", "", role_arn};
    return AssumeRole(server_, clock_, options,
                      {R"({"Version":"2012-10-17"})", seconds, "lambdadnn-uid"});
  }
  Status Answer(int status, const std::string& body, const std::string& role_arn = "") {
    server_ = Server();
    server_.Then(status, body);
    return Ask(900, role_arn).status();
  }

  Server server_;
  FixedClock clock_;
};

TEST_F(StsTest, AsksByASignedFormAndReadsWhatIsGiven) {
  server_.Then(200, kGiven);
  const auto given = Ask();
  ASSERT_TRUE(given.ok()) << given.status().ToString();
  EXPECT_EQ(given->credentials, (StoreCredentials{"AK", "S+/=", "T.o.k"}));
  // It ends by the server's clock, and no later than was asked for.
  EXPECT_EQ(given->lifetime_seconds, 600);
  EXPECT_EQ(server_.requests.size(), 1u);
  const HttpRequest& request = server_.requests[0];
  EXPECT_EQ(request.url, "http://store:9000/");
  EXPECT_EQ(server_.bodies[0],
            "Action=AssumeRole&DurationSeconds=900&Policy=%7B%22Version%22%3A%222012-10-17%22%7D&"
            "Version=2011-06-15");
  EXPECT_THAT(std::string(FindField(request.fields, "authorization")),
              HasSubstr("Credential=parent/20260131/us-east-1/sts/aws4_request"));
}

TEST_F(StsTest, ARoleIsAskedForByItsNameAndWithTheSessions) {
  server_.Then(200, kGiven);
  ASSERT_TRUE(Ask(900, "arn:aws:iam::123456789012:role/jobs").ok());
  EXPECT_EQ(server_.bodies[0],
            "Action=AssumeRole&DurationSeconds=900&Policy=%7B%22Version%22%3A%222012-10-17%22%7D&"
            "RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fjobs&RoleSessionName=lambdadnn-uid&"
            "Version=2011-06-15");
  const Status refused = Answer(403, Refused("AccessDenied", "not authorized"), "arn:role");
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(refused.message(), HasSubstr("allow them sts:AssumeRole of arn:role, and let"));
  EXPECT_THAT(refused.message(), Not(HasSubstr("service account")));
  const Status malformed = Answer(400, Refused("ValidationError"), "arn:role");
  EXPECT_EQ(malformed.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(malformed.message(), HasSubstr("this policy, duration or role (arn:role)"));
}

TEST_F(StsTest, AwsIsAskedAtTheServerOfTheRegion) {
  server_.Then(200, kGiven);
  S3Options options;
  options.bucket = "bucket";
  options.credentials = {"parent", "parent-secret", "", "arn:role"};
  const auto asked = [&](const std::string& endpoint, const std::string& region) {
    options.endpoint = endpoint;
    options.region = region;
    EXPECT_TRUE(AssumeRole(server_, clock_, options, {"{}"}).ok());
    return server_.requests.back().url;
  };
  EXPECT_EQ(asked("", "eu-west-1"), "https://sts.eu-west-1.amazonaws.com/");
  EXPECT_EQ(asked("https://s3.us-west-2.amazonaws.com", "us-west-2"),
            "https://sts.us-west-2.amazonaws.com/");
  EXPECT_EQ(asked("https://s3.cn-north-1.amazonaws.com.cn", "cn-north-1"),
            "https://sts.cn-north-1.amazonaws.com.cn/");
  EXPECT_THAT(std::string(FindField(server_.requests.back().fields, "authorization")),
              HasSubstr("/cn-north-1/sts/aws4_request"));
  EXPECT_EQ(FindField(server_.requests.back().fields, "host"), "sts.cn-north-1.amazonaws.com.cn");
}

TEST_F(StsTest, WithoutADateTheWholeDurationCounts) {
  server_.Then(200, kGiven, "");
  EXPECT_EQ(Ask(1000)->lifetime_seconds, 1000);
}

TEST_F(StsTest, AWrongClockOfOursIsNoRefusal) {
  clock_.shift_seconds = -7200;
  server_.Then(403, Refused("RequestTimeTooSkewed"));
  server_.Then(200, kGiven);
  EXPECT_TRUE(Ask().ok());
  ASSERT_EQ(server_.requests.size(), 2u);
  EXPECT_EQ(FindField(server_.requests[0].fields, "x-amz-date"), "20260131T100000Z");
  EXPECT_EQ(FindField(server_.requests[1].fields, "x-amz-date"), "20260131T120000Z");
}

TEST_F(StsTest, SaysWhyNoneAreGiven) {
  const Status service_account = Answer(403, Refused("AccessDenied", "Access Denied."));
  EXPECT_EQ(service_account.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(service_account.message(), HasSubstr("http://store:9000 refuses AssumeRole"));
  EXPECT_THAT(service_account.message(), HasSubstr("service account"));
  EXPECT_THAT(service_account.message(), Not(HasSubstr("parent-secret")));
  EXPECT_EQ(Answer(400, Refused("InvalidParameterValue")).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Answer(405, "<Error><Code>MethodNotAllowed</Code></Error>").code(),
            StatusCode::kUnimplemented);
  EXPECT_EQ(Answer(400, "<Error><Code>InvalidRequest</Code></Error>").code(),
            StatusCode::kUnimplemented);
  EXPECT_EQ(Answer(501, "").code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Answer(503, "").code(), StatusCode::kUnavailable);
  EXPECT_EQ(Answer(429, "slow down").code(), StatusCode::kUnavailable);
  constexpr const char* kHalf =
      "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>a"
      "</AccessKeyId></Credentials></AssumeRoleResult></AssumeRoleResponse>";
  for (const char* odd : {"", "hello", "<html/>", "<AssumeRoleResponse/>", kHalf}) {
    EXPECT_EQ(Answer(200, odd).code(), StatusCode::kUnimplemented) << odd;
  }
}

TEST(AssumeStoreRole, OtherStoresAndAwsWithoutARoleHaveNone) {
  SystemRuntime runtime;
  StoreConfig config;
  config.credentials = {"a", "b", ""};
  for (const auto& [uri, endpoint] :
       std::map<std::string, std::string>{{"file:///store", ""},
                                          {"s3://bucket/x", ""},
                                          {"s3://bucket", "https://s3.eu-west-1.amazonaws.com"}}) {
    config.uri = uri;
    config.endpoint = endpoint;
    const Status none = AssumeStoreRole(config, runtime, {"{}", 900}).status();
    EXPECT_EQ(none.code(), StatusCode::kUnimplemented) << uri;
    EXPECT_THAT(none.message(), HasSubstr(uri.starts_with("s3:") ? "key roleArn" : "no S3 store"));
  }
}

}  // namespace
}  // namespace lambdadnn
