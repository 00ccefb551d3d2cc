// SPDX-License-Identifier: Apache-2.0
#include "operator/api/conditions.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

WallTime At(int seconds) { return WallTime{} + std::chrono::seconds(seconds); }

TEST(Conditions, TransitionTimeMovesOnlyWhenTheStatusDoes) {
  std::vector<Condition> conditions;
  EXPECT_TRUE(SetCondition(&conditions, {"Ready", "False", "Deploying", "1 of 8", "", 1}, At(1)));
  EXPECT_TRUE(SetCondition(&conditions, {"Ready", "False", "Deploying", "7 of 8", "", 1}, At(2)));
  ASSERT_EQ(conditions.size(), 1u);
  EXPECT_EQ(conditions[0].message, "7 of 8");
  EXPECT_EQ(conditions[0].last_transition_time, FormatRfc3339(At(1)));
  EXPECT_TRUE(SetCondition(&conditions, {"Ready", "True", "AllReady", "", "", 1}, At(3)));
  EXPECT_EQ(conditions[0].last_transition_time, FormatRfc3339(At(3)));
}

TEST(Conditions, SettingTheSameAgainChangesNothing) {
  std::vector<Condition> conditions;
  SetCondition(&conditions, {"Ready", "True", "AllReady", "", "", 1}, At(1));
  const auto before = conditions;
  EXPECT_FALSE(SetCondition(&conditions, {"Ready", "True", "AllReady", "", "", 1}, At(9)));
  EXPECT_EQ(conditions, before);
}

TEST(Conditions, FindsByTypeAndTellsTrueFromUnknown) {
  std::vector<Condition> conditions;
  EXPECT_EQ(FindCondition(conditions, "Ready"), nullptr);
  EXPECT_FALSE(IsConditionTrue(conditions, "Ready"));
  SetCondition(&conditions, {"Ready", "Unknown", "Starting", "", "", 1}, At(1));
  EXPECT_FALSE(IsConditionTrue(conditions, "Ready"));
  SetCondition(&conditions, {"Failed", "True", "Bad", "", "", 1}, At(1));
  EXPECT_TRUE(IsConditionTrue(conditions, "Failed"));
}

TEST(Conditions, ALongMessageIsCutBetweenCharacters) {
  std::vector<Condition> conditions;
  std::string message;
  while (message.size() < 5000) message += "λ";
  SetCondition(&conditions, {"Failed", "True", "Bad", message, "", 1}, At(1));
  EXPECT_LE(conditions[0].message.size(), 4096u);
  EXPECT_NE(static_cast<unsigned char>(conditions[0].message[conditions[0].message.size() - 4]),
            0xCE);  // the first byte of the letter alone
  EXPECT_TRUE(conditions[0].message.ends_with("..."));
}

}  // namespace
}  // namespace lambdadnn
