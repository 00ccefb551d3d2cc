// SPDX-License-Identifier: Apache-2.0
#include "operator/cluster_view/openfaas_edition.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

std::string Info(const std::string& provider, const std::string& release) {
  return R"({"provider":{"provider":")" + provider + R"(","version":{"sha":"","release":")" +
         release + R"("},"orchestration":"kubernetes"},"version":{"release":"0.27.14"}})";
}

TEST(OpenFaasEdition, TheCommunityEditionCountsFunctionsSinceItsRelease17) {
  struct Row {
    const char* provider;
    const char* release;
    int functions;
  };
  for (const Row& row : {Row{"faas-netes-ce", "0.18.17", 15}, Row{"faas-netes-ce", "0.17.0", 15},
                         Row{"faas-netes-ce", "1.0.0", 15}, Row{"faas-netes-ce", "0.16.2", 0},
                         Row{"faas-netes-ce", "dev", 0}, Row{"faas-netes-ce", "", 0},
                         Row{"faas-netes", "0.18.17", 0}, Row{"operator", "0.5.80", 0}}) {
    const auto edition = ReadOpenFaasInfo(Info(row.provider, row.release));
    ASSERT_TRUE(edition.ok()) << edition.status().ToString();
    EXPECT_EQ(edition->max_functions, row.functions) << row.provider << " " << row.release;
    EXPECT_EQ(edition->provider, row.provider);
    EXPECT_EQ(edition->release, row.release);
  }
  EXPECT_EQ(ReadOpenFaasInfo(Info("faas-netes-ce", "0.18.17"))->Text(),
            "OpenFaaS Community Edition (faas-netes-ce 0.18.17)");
  EXPECT_EQ(ReadOpenFaasInfo(R"({"provider":{"name":"faasd"}})")->Text(), "OpenFaaS (faasd)");
}

TEST(OpenFaasEdition, WhoeverSaysSomethingElseIsNoGateway) {
  for (const char* answer : {"", "<html></html>", "{}", "[]", R"({"provider":null})",
                             R"({"provider":{}})", R"({"provider":"faas"})"}) {
    EXPECT_EQ(ReadOpenFaasInfo(answer).status().code(), StatusCode::kFailedPrecondition) << answer;
  }
}

}  // namespace
}  // namespace lambdadnn
