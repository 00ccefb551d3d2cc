// SPDX-License-Identifier: Apache-2.0
#include "common/base/text.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(Split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(Split("", ','), std::vector<std::string>{""});
}

TEST(Text, NearestWordFindsTypingMistakesOnly) {
  const std::vector<std::string> fields = {"epochs", "seed", "globalBatchSize"};
  EXPECT_EQ(NearestWord("epoch", fields), "epochs");
  EXPECT_EQ(NearestWord("globalBatchsize", fields), "globalBatchSize");
  EXPECT_EQ(NearestWord("epohcs", fields), "epochs");
  EXPECT_EQ(NearestWord("rnu", std::vector<std::string>{"plan", "run"}), "run");
  EXPECT_EQ(NearestWord("momentum", fields), std::nullopt);
  // Case is no edit, however much of it differs.
  EXPECT_EQ(NearestWord("idx", std::vector<std::string>{"CSV", "IDX"}), "IDX");
  EXPECT_EQ(NearestWord("bcewithlogit", std::vector<std::string>{"MSE", "BCEWithLogits"}),
            "BCEWithLogits");
}

TEST(Text, NumbersMustBeTheWholeText) {
  EXPECT_EQ(ParseDouble("0.5"), 0.5);
  EXPECT_EQ(ParseDouble("0.5x"), std::nullopt);
  EXPECT_EQ(ParseDouble("inf"), std::nullopt);
  EXPECT_EQ(ParseDouble(""), std::nullopt);
  EXPECT_EQ(ParseInteger("-12"), -12);
  EXPECT_EQ(ParseInteger("99999999999999999999"), std::nullopt);
}

TEST(Text, DoublesRoundTripInTheirShortestForm) {
  EXPECT_EQ(FormatDouble(0.1), "0.1");
  EXPECT_EQ(*ParseDouble(FormatDouble(1.0 / 3)), 1.0 / 3);
}

}  // namespace
}  // namespace lambdadnn
