// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/store_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const EndpointRules kOfPods = {.refuse_loopback = true,
                               .api_server = Endpoint{.host = "10.96.0.1", .port = 443}};

TEST(StoreEndpoint, AddressesThatAreNoStoreAreRefused) {
  const std::pair<const char*, const char*> kRows[] = {
      {"http://169.254.169.254", "link-local"},
      {"http://169.254.170.2/v2/credentials", "link-local"},
      {"http://169.254.169.254:80:80", "several colons"},
      {"http://store\\@169.254.169.254", "a character that no URL has"},
      {"http://169.254.169.254?a", "a query"},
      {"HTTP://169.254.169.254:80/", "link-local"},
      {"http://user@169.254.169.254", "link-local"},
      {"http://2852039166", "link-local"},           // 169.254.169.254 as one number
      {"http://0xa9fea9fe", "link-local"},           // in hexadecimal
      {"http://0251.0376.0251.0376", "link-local"},  // in octal
      {"http://[fe80::1]:9000", "link-local"},
      {"http://[fe80::1%25eth0]", "link-local"},
      {"http://[::ffff:169.254.169.254]", "link-local"},
      {"http://[64:ff9b::a9fe:a9fe]", "link-local"},
      {"http://metadata.google.internal", "link-local"},
      {"http://metadata.google.internal.", "link-local"},
      {"http://0.0.0.0:8080", "unspecified"},
      {"http://0:8080", "unspecified"},
      {"http://[::]:8080", "unspecified"},
      {"http://127.0.0.1:8080", "own pod"},
      {"http://127.1", "own pod"},
      {"http://2130706433", "own pod"},
      {"http://[::1]:8081", "own pod"},
      {"http://localhost:8081", "own pod"},
      {"http://LOCALHOST.", "own pod"},
      {"http://a.localhost", "own pod"},
      {"https://10.96.0.1", "API server"},
      {"https://10.96.0.1:443/", "API server"},
      {"https://kubernetes", "API server"},
      {"https://kubernetes.default", "API server"},
      {"https://kubernetes.default.svc.cluster.local:443", "API server"},
  };
  for (const auto& [endpoint, what] : kRows) {
    const Status checked = CheckEndpoint(kOfPods, endpoint);
    EXPECT_EQ(checked.code(), StatusCode::kPermissionDenied) << endpoint;
    EXPECT_THAT(checked.message(), HasSubstr(what)) << endpoint;
    EXPECT_THAT(checked.message(), HasSubstr("spec.objectStore.endpoint")) << endpoint;
  }
}

TEST(StoreEndpoint, StoresAreNot) {
  for (const char* endpoint :
       {"", "https://s3.eu-central-1.amazonaws.com", "http://minio.team.svc:9000",
        "http://minio.team.svc.cluster.local", "http://10.0.0.7:9000", "http://10.96.0.2",
        "http://10.96.0.1:9000", "http://[fd00::7]:9000", "http://192.168.1.169:9000",
        "https://kubernetes-store.example", "https://169.254.169.254.example.com",
        "http://metadata-store:9000"}) {
    EXPECT_TRUE(CheckEndpoint(kOfPods, endpoint).ok()) << endpoint;
  }
}

TEST(StoreEndpoint, OnOneMachineTheStoreMayBeThere) {
  for (const char* endpoint : {"http://127.0.0.1:9000", "http://localhost:9000", "http://[::1]"}) {
    EXPECT_TRUE(CheckEndpoint({}, endpoint).ok()) << endpoint;
  }
  EXPECT_FALSE(CheckEndpoint({}, "http://169.254.169.254").ok());
}

EndpointRules WithList(const std::string& entries) {
  EndpointRules rules = kOfPods;
  rules.listed = StoreEndpointsFromJson({{"allowedEndpoints", Json::parse(entries)}}).value();
  rules.listed->own = "http://minio.platform.svc:9000";
  return rules;
}

TEST(StoreEndpoint, WithAListOthersAreRefusedWithWhatIsAllowed) {
  const EndpointRules rules =
      WithList(R"([{"host": "*.team.svc", "port": 9000}, {"host": "192.0.2.0/24"}])");
  EXPECT_TRUE(CheckEndpoint(rules, "").ok());
  for (const char* endpoint : {"http://minio.team.svc:9000", "http://MINIO.team.svc.:9000",
                               "http://192.0.2.7", "http://MinIO.platform.svc:9000/"}) {
    EXPECT_TRUE(CheckEndpoint(rules, endpoint).ok()) << endpoint;
  }
  const Status refused = CheckEndpoint(rules, "http://key:secret@evil.example:9000");
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(refused.message(),
            "spec.objectStore.endpoint: http://evil.example:9000 is not among the object stores "
            "that jobs may use here (*.team.svc:9000, 192.0.2.0/24); leave it away for the "
            "operator's own, or ask the administrator to add it to objectStore.allowedEndpoints of "
            "the chart (--store-endpoints of the operator)");
  EXPECT_FALSE(CheckEndpoint(rules, "http://minio.team.svc:9001").ok());
  EXPECT_FALSE(CheckEndpoint(rules, "http://minio.platform.svc:9001").ok());
}

TEST(StoreEndpoint, AListWithoutEntriesLeavesTheOperatorsOwn) {
  const EndpointRules rules = WithList("[]");
  EXPECT_TRUE(CheckEndpoint(rules, "").ok());
  EXPECT_TRUE(CheckEndpoint(rules, "http://minio.platform.svc:9000").ok());
  EXPECT_THAT(CheckEndpoint(rules, "https://s3.example.com").message(),
              AllOf(HasSubstr("not the operator's own object store, and jobs may use no other"),
                    HasSubstr("objectStore.allowedEndpoints")));
}

TEST(StoreEndpoint, WhatIsNoStoreIsRefusedEvenWhereItIsListed) {
  const EndpointRules rules = WithList(
      R"([{"host": "*"}, {"host": "0.0.0.0/0"}, {"host": "::/0"}, {"host": "169.254.169.254"},
          {"host": "127.0.0.1"}, {"host": "localhost"}, {"host": "kubernetes.default.svc"}])");
  for (const auto& [endpoint, what] : std::vector<std::pair<std::string, std::string>>{
           {"http://169.254.169.254", "link-local"},
           {"http://[fe80::1]", "link-local"},
           {"http://127.0.0.1:8081", "own pod"},
           {"http://localhost:8081", "own pod"},
           {"http://0.0.0.0", "unspecified"},
           {"https://10.96.0.1", "API server"},
           {"https://kubernetes.default.svc", "API server"}}) {
    EXPECT_THAT(CheckEndpoint(rules, endpoint).message(), HasSubstr(what)) << endpoint;
  }
  EXPECT_TRUE(CheckEndpoint(rules, "http://192.0.2.7").ok());
}

}  // namespace
}  // namespace lambdadnn
