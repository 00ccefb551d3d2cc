// SPDX-License-Identifier: Apache-2.0
#include "common/json/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr size_t kMillion = 1'000'000;

std::string Repeat(std::string_view piece, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += piece;
  return text;
}

std::string Lists(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }
std::string Maps(size_t depth) { return Repeat("{\"a\":", depth) + "1" + std::string(depth, '}'); }

std::string MessageOf(std::string_view text, const JsonLimits& limits = {}) {
  const Result<Json> json = ParseJson(text, limits);
  if (json.ok()) return "";
  EXPECT_EQ(json.status().code(), StatusCode::kInvalidArgument);
  return json.status().message();
}

size_t DepthOf(const Json& json) {
  if (!json.is_structured()) return 0;
  size_t depth = 0;
  for (const Json& child : json) depth = std::max(depth, DepthOf(child));
  return depth + 1;
}

TEST(ParseJson, AnErrorNamesLineAndColumn) {
  EXPECT_EQ(MessageOf("{\n \"a\": b}"), "not JSON at line 2, column 7");
  EXPECT_EQ(MessageOf(""), "not JSON at line 1, column 0");
  EXPECT_EQ(MessageOf("1e999"), "not JSON: a number is too large");
}

TEST(ParseJson, DepthUpToTheLimit) {
  for (const std::string& text : {Lists(kMaxJsonDepth), Maps(kMaxJsonDepth)}) {
    const Result<Json> json = ParseJson(text);
    ASSERT_TRUE(json.ok()) << json.status().ToString();
    EXPECT_EQ(json->dump(), text);
  }
  EXPECT_EQ(MessageOf(Lists(kMaxJsonDepth + 1)),
            "nested more than 128 levels deep at line 1, column 129");
  EXPECT_EQ(MessageOf("{\n\"b\": " + Maps(kMaxJsonDepth) + "}"),
            "nested more than 128 levels deep at line 2, column 641");
}

TEST(ParseJson, AMillionLevelsAreRefusedBeforeAnythingIsBuilt) {
  for (const std::string& text :
       {Lists(kMillion), Maps(kMillion), std::string(kMillion, '['), Repeat("{\"a\":", kMillion),
        Repeat("[{\"a\":", kMillion), Repeat("[1,", kMillion),
        R"({"checksum":"x","a":)" + std::string(kMillion, '[')}) {
    EXPECT_THAT(MessageOf(text), HasSubstr("nested more than 128 levels deep at line 1"));
  }
}

TEST(ParseJson, BracketsSideBySideAreNotDeep) {
  const Result<Json> json = ParseJson("[" + Repeat("[[]],{},", kMillion / 10) + "0]");
  ASSERT_TRUE(json.ok()) << json.status().ToString();
  EXPECT_EQ(json->size(), kMillion / 10 * 2 + 1);
  EXPECT_EQ(MessageOf(std::string(1000, ']')), "not JSON at line 1, column 1");
}

TEST(ParseJson, BracketsInsideTextDoNotCount) {
  const std::string many(1000, '[');
  for (const char* before : {"", "\\\"", "\\\\", "\\\\\\\"", "{\\\""}) {
    const std::string text =
        std::string("[\"") + before + many + "\", {\"" + many + "\": \"" + many + "\"}]";
    EXPECT_EQ(MessageOf(text), "");
  }
  // A text that ends in a backslash: what follows the quote counts.
  EXPECT_THAT(MessageOf("[\"\\\\\"," + many), HasSubstr("nested more than"));
  EXPECT_THAT(MessageOf("[\"" + many), HasSubstr("not JSON at line 1, column 100"));
  EXPECT_THAT(MessageOf("[\"" + many + "\\"), HasSubstr("not JSON"));
}

TEST(ParseJson, LongerThanTheCallerReads) {
  EXPECT_EQ(MessageOf("[1,2]", {.bytes = 5}), "");
  EXPECT_EQ(MessageOf("[1,2] ", {.bytes = 5}), "longer than the 5 bytes that are read");
}

TEST(ParseJson, CutsWhatIsDeepWhereOthersDependOnTheRest) {
  const JsonLimits cut{.cut_deep = true};
  EXPECT_EQ(ParseJson(Lists(kMaxJsonDepth), cut)->dump(), Lists(kMaxJsonDepth));
  const auto parsed = ParseJson("{\"deep\": [" + Maps(kMillion) + ", [\"]\", " + Lists(kMillion) +
                                    "]], \"next\": [{\"[\": " + Lists(500) + "}, 2]}",
                                cut);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  const Json& json = *parsed;
  EXPECT_EQ(DepthOf(json), kMaxJsonDepth);
  EXPECT_EQ(json["deep"].size(), 2u);
  EXPECT_EQ(json["deep"][1][0], "]");
  EXPECT_EQ(json["next"][1], 2);
  Json inner = json["next"][0]["["];
  for (size_t level = 4; level < kMaxJsonDepth; ++level) inner = Json(inner[0]);
  EXPECT_EQ(inner, Json::array({nullptr}));
  EXPECT_THAT(MessageOf(std::string(kMillion, '['), cut), HasSubstr("not JSON"));
  EXPECT_THAT(MessageOf(Lists(200) + "]", cut), HasSubstr("not JSON"));
}

}  // namespace
}  // namespace lambdadnn
