// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/label_selector.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

bool Selects(const std::string& selector, const Json& labels) {
  const auto parsed = LabelSelector::Parse(selector);
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
  return parsed.ok() && parsed->Matches({{"metadata", {{"labels", labels}}}});
}

TEST(LabelSelector, EqualityAndInequality) {
  EXPECT_TRUE(Selects("app=x", {{"app", "x"}}));
  EXPECT_TRUE(Selects(" app == x ", {{"app", "x"}}));
  EXPECT_FALSE(Selects("app=x", {{"app", "y"}}));
  EXPECT_FALSE(Selects("app=x", {{"other", "x"}}));
  EXPECT_TRUE(Selects("app!=x", {{"app", "y"}}));
  EXPECT_TRUE(Selects("app!=x", {{"other", "x"}}));
  EXPECT_TRUE(Selects("app=", {{"app", ""}}));
}

TEST(LabelSelector, SetsAndExistence) {
  EXPECT_TRUE(Selects("tier in (a, b)", {{"tier", "b"}}));
  EXPECT_FALSE(Selects("tier in (a,b)", {{"tier", "c"}}));
  EXPECT_TRUE(Selects("tier notin (a,b)", {{"tier", "c"}}));
  EXPECT_TRUE(Selects("tier notin (a,b)", {{"x", "a"}}));
  EXPECT_TRUE(Selects("lambdadnn.io/job-uid", {{"lambdadnn.io/job-uid", "u"}}));
  EXPECT_TRUE(Selects("!tier", {{"x", "a"}}));
  EXPECT_FALSE(Selects("!tier", {{"tier", "a"}}));
}

TEST(LabelSelector, AllPartsMustHold) {
  EXPECT_TRUE(Selects("a=1,b in (2,3),!c", {{"a", "1"}, {"b", "3"}}));
  EXPECT_FALSE(Selects("a=1,b in (2,3),!c", {{"a", "1"}, {"b", "3"}, {"c", ""}}));
}

TEST(LabelSelector, AnEmptyOneSelectsObjectsWithoutLabelsToo) {
  EXPECT_TRUE(LabelSelector::Parse("")->Matches(Json::object()));
  EXPECT_FALSE(LabelSelector::Parse("a")->Matches(Json::object()));
  EXPECT_FALSE(LabelSelector::Parse("a")->Matches({{"metadata", {{"labels", 7}}}}));
}

TEST(LabelSelector, NonsenseIsAnError) {
  for (const char* text : {"a in b", "a in (b", "=x", ",", "a,,b", "a=b=c", "a b", "a=(x)"}) {
    EXPECT_EQ(LabelSelector::Parse(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace lambdadnn
