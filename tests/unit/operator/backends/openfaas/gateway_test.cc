// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/openfaas/gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "common/base/files.h"

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

class Answering final : public HttpTransport {
 public:
  Result<HttpResponse> Send(const HttpRequest& request) override {
    asked = request;
    if (body_.has_value()) {
      HttpResponse response;
      response.status = status_;
      const ByteView bytes = AsBytes(*body_);
      response.body.assign(bytes.begin(), bytes.end());
      return response;
    }
    return UnavailableError("connection refused");
  }
  void With(int status, std::string body) {
    status_ = status;
    body_ = std::move(body);
  }
  HttpRequest asked;

 private:
  int status_ = 0;
  std::optional<std::string> body_;
};

OpenFaasGateway::Options At(const std::string& auth = "") {
  return {.endpoint = {.scheme = "http", .host = "gateway", .port = 8080}, .auth_folder = auth};
}

TEST(OpenFaasGateway, ErrorsAreByTheProvidersWords) {
  Answering transport;
  OpenFaasGateway gateway(transport, At());
  struct Row {
    int status;
    const char* body;
    StatusCode code;
    const char* message;
  };
  // As faas-netes answers.
  for (const Row& row : {
           Row{401, "invalid credentials\n", StatusCode::kUnauthenticated, "--openfaas-auth-dir"},
           Row{400, "valid namespaces are: openfaas-fn", StatusCode::kInvalidArgument,
               "valid namespaces"},
           Row{400, "unable to fetch secrets: secrets \"x\" not found",
               StatusCode::kInvalidArgument, "secrets"},
           Row{500, "unable create Deployment: deployments.apps \"x\" already exists",
               StatusCode::kAlreadyExists, "x"},
           Row{409, "", StatusCode::kAlreadyExists, "409"},
           Row{400, "unable to create function, maximum: 15", StatusCode::kResourceExhausted,
               "maximum: 15"},
           Row{404, "", StatusCode::kNotFound, "404"},
           Row{429, "", StatusCode::kResourceExhausted, "429"},
           Row{502, "", StatusCode::kUnavailable, "502"},
           Row{500, "etcd is away", StatusCode::kUnavailable, "etcd is away"},
       }) {
    transport.With(row.status, row.body);
    const Status refused = gateway.Deploy({{"service", "x"}});
    EXPECT_EQ(refused.code(), row.code) << row.status << " " << row.body;
    EXPECT_THAT(refused.message(), HasSubstr(row.message));
    EXPECT_THAT(refused.message(), HasSubstr("http://gateway:8080/system/functions"));
  }
}

TEST(OpenFaasGateway, WhatIsNoGatewayIsToldWithTheFlag) {
  Answering transport;
  OpenFaasGateway gateway(transport, At());
  EXPECT_EQ(gateway.Info().status().code(), StatusCode::kUnavailable);
  transport.With(404, "<html>no such page</html>");
  EXPECT_EQ(gateway.Info().status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(gateway.Info().status().message(), HasSubstr("--openfaas-gateway"));
  transport.With(403, "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code></Error>");
  EXPECT_EQ(gateway.Info().status().code(), StatusCode::kFailedPrecondition);
  // As an object store answers credentials of another kind.
  transport.With(400, "<?xml version=\"1.0\"?>\n<Error><Code>InvalidRequest</Code></Error>");
  EXPECT_EQ(gateway.Info().status().code(), StatusCode::kFailedPrecondition);
  transport.With(200, "<html>welcome</html>");
  EXPECT_EQ(gateway.Info().status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(gateway.Info().status().message(), HasSubstr("--openfaas-gateway"));
}

TEST(OpenFaasGateway, CredentialsAreReadAnewAtEachRequest) {
  const std::string folder = testing::TempDir() + "/openfaas_gateway_test";
  std::filesystem::remove_all(folder);
  Answering transport;
  transport.With(202, "");
  OpenFaasGateway gateway(transport, At(folder));
  EXPECT_FALSE(gateway.Delete("x").ok());
  for (const char* password : {"first", "second"}) {
    ASSERT_TRUE(WriteFileAtomically(folder + "/basic-auth-user", "admin\n").ok());
    ASSERT_TRUE(WriteFileAtomically(folder + "/basic-auth-password", password).ok());
    EXPECT_TRUE(gateway.Delete("x").ok());
    const std::string sent(FindField(transport.asked.fields, "Authorization"));
    EXPECT_EQ(sent,
              std::string("Basic ") +
                  (password == std::string("first") ? "YWRtaW46Zmlyc3Q=" : "YWRtaW46c2Vjb25k"));
  }
}

TEST(OpenFaasGateway, ListsMayBeNullAndMustBeLists) {
  Answering transport;
  OpenFaasGateway gateway(transport, At());
  transport.With(200, "null");
  EXPECT_TRUE(gateway.Functions()->empty());
  EXPECT_TRUE(gateway.Secrets()->empty());
  transport.With(
      200,
      R"([{"name":"a","labels":{"x":"y"},"replicas":1,"createdAt":"t"},{"name":"b","labels":null}])");
  const std::vector<DeployedFunction> functions = gateway.Functions().value();
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].labels.at("x"), "y");
  EXPECT_EQ(functions[0].replicas, 1);
  EXPECT_EQ(functions[0].available, 0);
  EXPECT_TRUE(functions[1].labels.empty());
  transport.With(200, "{}");
  EXPECT_EQ(gateway.Functions().status().code(), StatusCode::kUnavailable);
}

TEST(OpenFaasGateway, LogsAreTheTextsOfItsMessages) {
  Answering transport;
  OpenFaasGateway gateway(transport, At());
  transport.With(200, "{\"name\":\"a\",\"text\":\"one\"}\n{\"name\":\"a\",\"text\":\"two\"}\n");
  EXPECT_EQ(gateway.Logs("a", 2).value(), "one\ntwo\n");
  EXPECT_THAT(transport.asked.url, HasSubstr("tail=2"));
}

TEST(OpenFaasGateway, AFunctionIsBehindItsName) {
  Answering transport;
  OpenFaasGateway::Options with = At();
  with.endpoint.path = "/faas";
  OpenFaasGateway gateway(transport, with);
  EXPECT_EQ(gateway.EndpointOf("digits-worker-3").Text(),
            "http://gateway:8080/faas/function/digits-worker-3.openfaas-fn");
}

}  // namespace
}  // namespace lambdadnn
