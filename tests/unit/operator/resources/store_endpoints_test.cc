// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/store_endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/files.h"
#include "operator/resources/network_policy.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

StoreEndpoints Listed(const std::string& entries) {
  auto endpoints = StoreEndpointsFromJson({{"allowedEndpoints", Json::parse(entries)}});
  EXPECT_TRUE(endpoints.ok()) << endpoints.status().ToString();
  return endpoints.value();
}

Json Ports(int port) { return Json::array({{{"port", port}, {"protocol", "TCP"}}}); }

Json Block(const std::string& cidr) { return Json::array({{{"ipBlock", {{"cidr", cidr}}}}}); }

const Json kTeam = Json::array({{{"namespaceSelector", {{"matchLabels", {{"team", "a"}}}}}}});

TEST(StoreEndpoints, EntriesMatchByHostAndPort) {
  struct Row {
    const char* entry;
    const char* endpoint;
    bool allowed;
  };
  const Row kRows[] = {
      {R"({"host": "minio.team.svc"})", "http://minio.team.svc:9000", true},
      {R"({"host": "minio.team.svc"})", "https://minio.team.svc", true},
      {R"({"host": "minio.team.svc"})", "http://minio.team.svc.evil", false},
      {R"({"host": "minio.team.svc"})", "http://xminio.team.svc", false},
      {R"({"host": "minio.team.svc"})", "http://minio.team.svc@evil:9000", false},
      {R"({"host": "minio.team.svc", "port": 9000})", "http://minio.team.svc:9000", true},
      {R"({"host": "minio.team.svc", "port": 9000})", "http://minio.team.svc:9001", false},
      {R"({"host": "minio.team.svc", "port": 9000})", "http://minio.team.svc", false},
      {R"({"host": "s3.example.com", "port": 443})", "https://s3.example.com", true},
      {R"({"host": "s3.example.com", "port": 443})", "http://s3.example.com", false},
      // One host has several texts.
      {R"({"host": "MinIO.Team.svc."})", "http://minio.team.svc", true},
      {R"({"host": "minio.team.svc"})", "http://MINIO.team.SVC.:9000", true},
      // Names that end in the suffix, but not the suffix itself.
      {R"({"host": "*.example.com"})", "https://s3.example.com", true},
      {R"({"host": "*.Example.com."})", "https://A.b.example.com.", true},
      {R"({"host": "*.example.com"})", "https://example.com", false},
      {R"({"host": "*.example.com"})", "https://.example.com", false},
      {R"({"host": "*.example.com"})", "https://evilexample.com", false},
      {R"({"host": "*.example.com"})", "https://s3.example.com.evil", false},
      {R"({"host": "*.example.com", "port": 9000})", "https://s3.example.com", false},
      // Addresses, however they are written.
      {R"({"host": "10.0.0.7"})", "http://10.0.0.7:9000", true},
      {R"({"host": "10.0.0.7"})", "http://10.0.0.8:9000", false},
      {R"({"host": "10.0.0.7"})", "http://0xa000007:9000", true},
      {R"({"host": "10.0.0.7"})", "http://[::ffff:10.0.0.7]:9000", true},
      {R"({"host": "10.0.0.7"})", "http://10.0.0.7.example.com", false},
      {R"({"host": "10.0.0.0/8"})", "http://10.255.1.2", true},
      {R"({"host": "10.0.0.0/8"})", "http://11.0.0.1", false},
      {R"({"host": "10.0.0.0/8"})", "http://store.example.com", false},
      {R"({"host": "192.0.2.128/25", "port": 80})", "http://192.0.2.129", true},
      {R"({"host": "192.0.2.128/25", "port": 80})", "http://192.0.2.127", false},
      {R"({"host": "10.0.0.0/8"})", "http://[fd00::1]", false},
      {R"({"host": "FD00::7"})", "http://[fd00:0::7]:9000", true},
      {R"({"host": "fd00::/12"})", "http://[fd0f::1]", true},
      {R"({"host": "fd00::/12"})", "http://[fd10::1]", false},
      {R"({"host": "0.0.0.0/0"})", "http://192.0.2.1", true},
      {R"({"host": "0.0.0.0/0"})", "http://store", false},
      // Every host.
      {R"({"host": "*", "port": 9000})", "http://store:9000", true},
      {R"({"host": "*", "port": 9000})", "http://10.0.0.7:9000", true},
      {R"({"host": "*", "port": 9000})", "http://store:9001", false},
  };
  for (const Row& row : kRows) {
    const StoreEndpoints listed = Listed("[" + std::string(row.entry) + "]");
    const Result<Endpoint> endpoint = ParseEndpoint(row.endpoint);
    ASSERT_TRUE(endpoint.ok()) << row.endpoint;
    EXPECT_EQ(listed.Allows(*endpoint), row.allowed) << row.entry << " " << row.endpoint;
  }
}

TEST(StoreEndpoints, TheOperatorsOwnIsAlwaysAllowed) {
  StoreEndpoints none;
  none.own = "http://MinIO:9000/";
  EXPECT_TRUE(none.Allows(ParseEndpoint("http://minio.:9000").value()));
  EXPECT_FALSE(none.Allows(ParseEndpoint("http://minio:9001").value()));
  none.own = "";
  EXPECT_FALSE(none.Allows(ParseEndpoint("https://minio:9000").value()));
}

TEST(StoreEndpoints, PacketsGoWhereTheEntriesSay) {
  StoreEndpoints listed = Listed(
      R"([{"host": "minio.team.svc", "peers": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]},
          {"host": "*.team.svc"},
          {"host": "*.svc", "port": 9000, "peers": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
          {"host": "10.0.0.0/8"}, {"host": "fd00::/8"},
          {"host": "10.9.0.1", "peers": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]}])");
  Json both = kTeam;
  both.push_back(Block("192.0.2.0/24")[0]);
  const std::pair<const char*, Json> kRows[] = {
      {"http://minio.team.svc", Json::array({{{"to", kTeam}, {"ports", Ports(80)}}})},
      {"http://minio.team.svc:9000", Json::array({{{"to", both}, {"ports", Ports(9000)}}})},
      // Where a name leads is not known.
      {"https://other.team.svc", Json::array()},
      {"http://10.0.0.7:9000",
       Json::array({{{"to", Block("10.0.0.7/32")}, {"ports", Ports(9000)}}})},
      {"http://[::ffff:10.0.0.7]",
       Json::array({{{"to", Block("10.0.0.7/32")}, {"ports", Ports(80)}}})},
      {"https://[FD00:0::7]", Json::array({{{"to", Block("fd00::7/128")}, {"ports", Ports(443)}}})},
      // The address of a Service is none of a pod.
      {"http://10.9.0.1", Json::array({{{"to", kTeam}, {"ports", Ports(80)}}})},
      {"http://evil:9000", Json::array()},
      {"http://192.0.2.1", Json::array()},
      {"no endpoint", Json::array()},
  };
  for (const auto& [endpoint, rules] : kRows) {
    EXPECT_EQ(listed.Egress(endpoint), rules) << endpoint;
  }
}

TEST(StoreEndpoints, TheOperatorsOwnHasPeersOfItsOwn) {
  StoreEndpoints listed = Listed(R"([{"host": "*", "peers": [{"podSelector": {}}]}])");
  // AWS's, wherever it is.
  EXPECT_EQ(listed.Egress(""), Json::array({{{"ports", Ports(443)}}}));
  listed.own = "http://minio:9000";
  EXPECT_THAT(listed.Egress(""), IsEmpty());
  EXPECT_EQ(listed.Egress("http://minio:9000/"), Json::array({{{"ports", Ports(9000)}}}));
  listed.own = "http://192.0.2.7:9000";
  EXPECT_EQ(listed.Egress("http://192.0.2.7:9000"),
            Json::array({{{"to", Block("192.0.2.7/32")}, {"ports", Ports(9000)}}}));
  listed.own_peers = kTeam;
  EXPECT_EQ(listed.Egress("http://192.0.2.7:9000"),
            Json::array({{{"to", kTeam}, {"ports", Ports(9000)}}}));
}

TEST(StoreEndpoints, AJobsPolicyHasNoOtherWayToAStore) {
  FunctionGroup group;
  group.job_uid = "uid-1";
  group.job_name = "digits";
  JobNetworkOptions options;
  options.endpoints = Listed(R"([{"host": "10.0.0.7"}, {"host": "store.example.com"}])");
  options.endpoints->own = "http://minio:9000";
  const auto egress_at = [&](const std::string& endpoint) {
    group.environment["LAMBDADNN_S3_ENDPOINT"] = endpoint;
    return JobNetworkPolicy(group, options)["spec"]["egress"];
  };
  // The job's other pods, and names.
  const Json others = egress_at("https://evil:9000");
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(egress_at("https://store.example.com"), others);
  EXPECT_EQ(egress_at("http://10.0.0.7:9000").back(),
            Json({{"to", Block("10.0.0.7/32")}, {"ports", Ports(9000)}}));
  EXPECT_EQ(egress_at("http://minio:9000").back(), Json({{"ports", Ports(9000)}}));
  // What the administrator says of the stores of all jobs comes first.
  options.store = Json::array({{{"to", kTeam}}});
  EXPECT_EQ(egress_at("https://evil:9000").back(), options.store[0]);
}

TEST(StoreEndpoints, WhatMakesNoSenseIsNamed) {
  const auto message = [](const std::string& text) {
    return StoreEndpointsFromJson(Json::parse(text)).status().message();
  };
  EXPECT_EQ(message("{}"), "");
  EXPECT_EQ(message(R"({"peers": [], "allowedEndpoints": []})"), "");
  EXPECT_NE(message("[]"), "");
  EXPECT_THAT(message(R"({"peers": [{}]})"), HasSubstr("peers[0]"));
  EXPECT_THAT(message(R"({"hosts": []})"), HasSubstr("hosts"));
  EXPECT_THAT(message(R"({"allowedEndpoints": {}})"), HasSubstr("allowedEndpoints"));
  const auto of_entry = [&](const std::string& entry) {
    return message(R"({"allowedEndpoints": [)" + entry + "]}");
  };
  EXPECT_THAT(of_entry("7"), HasSubstr("allowedEndpoints[0]"));
  EXPECT_THAT(of_entry(R"({"port": 9000})"), HasSubstr("allowedEndpoints[0].host"));
  for (const char* host : {"", "http://minio:9000", "minio:9000", "a b", "*minio", "a.*.b", "*.",
                           "10.0.0.0/33", "fd00::/129", "10.0.0.0/x", "10.1", "0x7f.1", "[fd00::7]",
                           ".example.com", "a..b", "*.10.0.0.7"}) {
    EXPECT_THAT(of_entry(R"({"host": ")" + std::string(host) + R"("})"),
                HasSubstr("allowedEndpoints[0].host"))
        << host;
  }
  for (const char* port : {"0", "65536", "-1", "\"http\""}) {
    EXPECT_THAT(of_entry(R"({"host": "a", "port": )" + std::string(port) + "}"),
                HasSubstr("allowedEndpoints[0].port"))
        << port;
  }
  EXPECT_THAT(of_entry(R"({"host": "a", "peers": [{"pods": {}}]})"),
              HasSubstr("allowedEndpoints[0].peers[0].pods"));
  EXPECT_THAT(of_entry(R"({"host": "a", "peer": []})"), HasSubstr("peer"));
}

TEST(StoreEndpoints, OfAFileSayWhichFile) {
  const std::string file = MakeTempDir() + "/endpoints.yaml";
  EXPECT_THAT(ReadStoreEndpoints(file).status().message(), HasSubstr(file));
  const auto read = [&](const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(file, text).ok());
    return ReadStoreEndpoints(file);
  };
  EXPECT_THAT(read("allowedEndpoints: [").status().message(), HasSubstr(file + ":"));
  EXPECT_THAT(read("allowedEndpoints: [{}]\n").status().message(), HasSubstr(file));
  const auto listed = read("allowedEndpoints:\n- host: minio\n  port: 9000\n- host: fd00::7\n");
  ASSERT_TRUE(listed.ok()) << listed.status().ToString();
  EXPECT_EQ(listed->Text(), "minio:9000, fd00::7");
}

TEST(IpBlock, AnAddressOfNat64LeadsToOneOfIpv4ButIsNotThatOne) {
  const auto behind = [](const std::string& host) {
    return BehindNat64(AddressOfHost(host).value()).Cidr();
  };
  EXPECT_EQ(behind("64:ff9b::a9fe:a9fe"), "169.254.169.254/32");
  EXPECT_EQ(behind("64:ff9b:1::a9fe:a9fe"), "64:ff9b:1::a9fe:a9fe/128");
  EXPECT_EQ(behind("::ffff:10.0.0.7"), "10.0.0.7/32");
  EXPECT_EQ(behind("10.0.0.7"), "10.0.0.7/32");
  EXPECT_EQ(behind("fd00::7"), "fd00::7/128");
  // A NetworkPolicy must name the address that packets go to.
  EXPECT_EQ(AddressOfHost("64:ff9b::a00:7")->Cidr(), "64:ff9b::a00:7/128");
}

TEST(IpBlock, OneServerHasSeveralTexts) {
  const Endpoint minio{.host = "minio.store.", .port = 80};
  EXPECT_TRUE(IsSameServer(minio, {.scheme = "http", .host = "minio.store"}));
  EXPECT_FALSE(IsSameServer(minio, {.host = "minio.store", .port = 9000}));
  EXPECT_FALSE(IsSameServer(minio, {.host = "minio.store.svc"}));
}

TEST(StoreEndpoints, TheTextOfManyIsShort) {
  StoreEndpoints listed;
  EXPECT_EQ(listed.Text(), "none");
  for (const char* host : {"a", "b", "c", "d", "e"}) listed.allowed.push_back({.host = host});
  EXPECT_EQ(listed.Text(), "a, b, c, d, e");
  listed.allowed.push_back({.host = "f"});
  EXPECT_EQ(listed.Text(), "a, b, c, d, e, and 1 more");
}

}  // namespace
}  // namespace lambdadnn
