// SPDX-License-Identifier: Apache-2.0
#include "common/base/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Row {
  const char* text;
  Endpoint endpoint;
  const char* shown;
  int port;
};

const Row kGood[] = {
    {"https://s3.example", {"https", "", "s3.example"}, "https://s3.example", 443},
    {"http://s3.example", {"http", "", "s3.example"}, "http://s3.example", 80},
    {"s3.example", {"", "", "s3.example"}, "s3.example", 443},
    {"s3.example:9001", {"", "", "s3.example", 9001}, "s3.example:9001", 9001},
    {"http://minio:9000/", {"http", "", "minio", 9000}, "http://minio:9000", 9000},
    {"HTTP://MinIO:9000", {"http", "", "minio", 9000}, "http://minio:9000", 9000},
    {"http://gw:8080/function/a//",
     {"http", "", "gw", 8080, "/function/a"},
     "http://gw:8080/function/a",
     8080},
    {"http://s3.example/path:7",
     {"http", "", "s3.example", 0, "/path:7"},
     "http://s3.example/path:7",
     80},
    {"http://s3.example/a@b", {"http", "", "s3.example", 0, "/a@b"}, "http://s3.example/a@b", 80},
    {"http://user:key@gw:1", {"http", "user:key", "gw", 1}, "http://gw:1", 1},
    {"http://a@b@gw", {"http", "a@b", "gw"}, "http://gw", 80},
    {"http://[fd00::1]:9000", {"http", "", "fd00::1", 9000}, "http://[fd00::1]:9000", 9000},
    {"http://[FD00::1]", {"http", "", "fd00::1"}, "http://[fd00::1]", 80},
    {"[::1]:1", {"", "", "::1", 1}, "[::1]:1", 1},
    {"http://[fe80::1%25eth0]", {"http", "", "fe80::1%25eth0"}, "http://[fe80::1%25eth0]", 80},
    {"http://host:65535", {"http", "", "host", 65535}, "http://host:65535", 65535},
};

TEST(Endpoint, IsReadAndShown) {
  for (const Row& row : kGood) {
    const Result<Endpoint> read = ParseEndpoint(row.text);
    ASSERT_TRUE(read.ok()) << row.text << ": " << read.status().ToString();
    EXPECT_EQ(*read, row.endpoint) << row.text;
    EXPECT_EQ(read->Text(), row.shown) << row.text;
    EXPECT_EQ(read->PortOrUsual(), row.port) << row.text;
  }
}

TEST(Endpoint, WhatIsNoneIsRefusedWithItsReason) {
  const std::pair<const char*, const char*> kRows[] = {
      {"", "names no host"},
      {"https://", "names no host"},
      {"https://:443", "names no host"},
      {"/path", "names no host"},
      {"http://user@", "names no host"},
      {"ftp://host", "http:// or https://"},
      {"://host", "http:// or https://"},
      {"http://host:", "from 1 to 65535"},
      {"http://host:0", "from 1 to 65535"},
      {"http://host:65536", "from 1 to 65535"},
      {"http://host:nine", "from 1 to 65535"},
      {"http://host:-1", "from 1 to 65535"},
      {"http://host:80:80", "several colons"},
      {"http://fd00::1", "several colons"},
      {"http://[fd00::1", "bracket"},
      {"http://[fd00::1]9000", "bracket"},
      {"http://[host]", "no IPv6 address"},
      {"http://host?a=b", "query"},
      {"http://host/path#part", "fragment"},
      {"http://ho st", "no URL has"},
      {"http://host\n", "no URL has"},
      {"http://store\\@host", "no URL has"},
  };
  for (const auto& [text, reason] : kRows) {
    const Result<Endpoint> read = ParseEndpoint(text);
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(read.status().message(), HasSubstr(reason)) << text;
  }
}

TEST(Endpoint, AMessageTellsNoPassword) {
  const Status refused = ParseEndpoint("http://user:secret@host:0").status();
  EXPECT_THAT(refused.message(), HasSubstr("'http://host:0'"));
  EXPECT_THAT(refused.message(), Not(HasSubstr("secret")));
}

TEST(Endpoint, TheHostFieldNamesAPortThatIsNotTheUsualOne) {
  const std::pair<const char*, const char*> kRows[] = {
      {"http://host:80", "host"},          {"https://host:443", "host"},
      {"http://host:443", "host:443"},     {"http://host", "host"},
      {"https://host:80", "host:80"},      {"host:443", "host:443"},
      {"http://[::1]:8080", "[::1]:8080"}, {"http://[::1]:80/a", "[::1]"},
  };
  for (const auto& [text, field] : kRows) {
    EXPECT_EQ(ParseEndpoint(text).value().HostField(), field) << text;
  }
}

TEST(HostAndPort, AreTakenApartUnread) {
  EXPECT_EQ(SplitHostAndPort(":8080")->host, "");
  EXPECT_EQ(SplitHostAndPort(":8080")->port, "8080");
  EXPECT_EQ(SplitHostAndPort("host")->port, std::nullopt);
  EXPECT_EQ(SplitHostAndPort("host:")->port, "");
  EXPECT_EQ(SplitHostAndPort("[::1]:0")->host, "::1");
  EXPECT_EQ(SplitHostAndPort("[::1]:0")->port, "0");
  EXPECT_EQ(SplitHostAndPort("[::1]")->port, std::nullopt);
  EXPECT_FALSE(SplitHostAndPort("[::1").has_value());
}

}  // namespace
}  // namespace lambdadnn
