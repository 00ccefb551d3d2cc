// SPDX-License-Identifier: Apache-2.0
#include "common/json/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

namespace lambdadnn {
namespace {

using ::testing::HasSubstr;

Json One(std::string_view text) {
  const YamlParseResult parsed = ParseYaml(text);
  EXPECT_FALSE(parsed.error) << parsed.error->message;
  EXPECT_EQ(parsed.documents.size(), 1u);
  return parsed.documents.empty() ? Json() : parsed.documents[0].value;
}

YamlError ErrorOf(std::string_view text) {
  const YamlParseResult parsed = ParseYaml(text);
  EXPECT_TRUE(parsed.error) << text;
  EXPECT_TRUE(parsed.documents.empty());
  return parsed.error.value_or(YamlError{});
}

TEST(Yaml, ScalarsMeanWhatKubectlTakesThemFor) {
  EXPECT_EQ(One("a: 1\nb: -2\nc: 0x10\nd: 1.5\ne: 1e3\nf: .5"),
            (Json{{"a", 1}, {"b", -2}, {"c", 16}, {"d", 1.5}, {"e", 1000.0}, {"f", 0.5}}));
  EXPECT_EQ(One("[true, yes, On, false, no, OFF]"), (Json{true, true, true, false, false, false}));
  EXPECT_EQ(One("[null, ~, ]"), (Json{nullptr, nullptr}));
  EXPECT_EQ(One("['1', \"true\", text, 1728Mi, 2026-01-31, 007, .inf, .nan, 1.2.3, -]").dump(),
            R"(["1","true","text","1728Mi","2026-01-31","007",".inf",".nan","1.2.3","-"])");
  EXPECT_EQ(One("18446744073709551615"), Json(UINT64_MAX));
  EXPECT_TRUE(One("18446744073709551616").is_number_float());
  EXPECT_EQ(One("a: !!str 1"), (Json{{"a", "1"}}));
}

TEST(Yaml, JsonIsYaml) {
  EXPECT_EQ(One(R"({"a": [1, {"b": "c\n"}], "d": null})"),
            Json::parse(R"({"a": [1, {"b": "c\n"}], "d": null})"));
}

TEST(Yaml, LinesOfEveryFieldAndOfTheNearestAncestor) {
  const auto parsed = ParseYaml("# comment\na:\n  b: 1\n  c:\n  - x\n  - y: 2\n");
  ASSERT_EQ(parsed.documents.size(), 1u);
  const YamlDocument& document = parsed.documents[0];
  EXPECT_EQ(document.line, 2);
  EXPECT_EQ(document.LineOf("a"), 2);
  EXPECT_EQ(document.LineOf("a.b"), 3);
  EXPECT_EQ(document.LineOf("a.c"), 4);
  EXPECT_EQ(document.LineOf("a.c[0]"), 5);
  EXPECT_EQ(document.LineOf("a.c[1].y"), 6);
  EXPECT_EQ(document.LineOf("a.c[1].z"), 6);
  EXPECT_EQ(document.LineOf("a.missing.deep"), 2);
  EXPECT_EQ(document.LineOf("x"), 2);
  EXPECT_EQ(document.LineOf(""), 2);
}

TEST(Yaml, SeveralDocumentsWithTheirOwnLines) {
  const auto parsed = ParseYaml("---\na: 1\n---\n# nothing\n---\nb: 2\n...\n");
  ASSERT_EQ(parsed.documents.size(), 2u);
  EXPECT_EQ(parsed.documents[1].LineOf("b"), 6);
}

TEST(Yaml, NothingIsNoDocument) {
  EXPECT_TRUE(ParseYaml("").documents.empty());
  EXPECT_TRUE(ParseYaml("\n# only a comment\n---\n").documents.empty());
}

TEST(Yaml, DuplicateKeysNameBothLines) {
  const YamlError error = ErrorOf("a:\n  b: 1\n  c: 2\n  b: 3\n");
  EXPECT_EQ(error.line, 4);
  EXPECT_EQ(error.column, 3);
  EXPECT_THAT(error.message, HasSubstr("\"b\" is given twice, here and at line 2"));
}

TEST(Yaml, TabsInTheIndentationAreNamed) {
  const YamlError error = ErrorOf("a:\n\tb: 1\n");
  EXPECT_EQ(error.line, 2);
  EXPECT_THAT(error.message, HasSubstr("tab"));
}

TEST(Yaml, AliasesAreExpandedButNotIntoBombs) {
  EXPECT_EQ(One("a: &x [1, 2]\nb: *x"), (Json{{"a", {1, 2}}, {"b", {1, 2}}}));
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string previous = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k > 0 ? ", " : "") + previous;
    bomb += "]\n";
  }
  EXPECT_THAT(ErrorOf(bomb).message, HasSubstr("more than 100000 values"));
  EXPECT_THAT(ErrorOf("a: &a [*a]").message, HasSubstr("inside its anchor"));
  EXPECT_THAT(ErrorOf("a: *nowhere").line, 1);
}

TEST(Yaml, DeepNestingIsAnErrorNotACrash) {
  EXPECT_THAT(ErrorOf(std::string(100, '[') + std::string(100, ']')).message,
              HasSubstr("levels deep"));
  EXPECT_TRUE(ParseYaml(std::string(500'000, '[')).error);
  EXPECT_TRUE(ParseYaml(std::string(100'000, '{')).error);
  EXPECT_TRUE(ParseYaml(std::string(2 << 20, 'a')).error);
  EXPECT_FALSE(ParseYaml(std::string(kMaxYamlDepth, '[') + std::string(kMaxYamlDepth, ']')).error);
  EXPECT_TRUE(
      ParseYaml(std::string(kMaxYamlDepth + 1, '[') + std::string(kMaxYamlDepth + 1, ']')).error);
}

TEST(Yaml, AliasesCountWithTheirLevels) {
  const auto chain = [](int levels) {
    std::string text = "- &a1 [x]\n";
    for (int i = 2; i < levels; ++i) {
      text += "- &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
    }
    return text;
  };
  EXPECT_FALSE(ParseYaml(chain(kMaxYamlDepth)).error);
  EXPECT_EQ(ErrorOf(chain(kMaxYamlDepth + 1)).message, "nested more than 64 levels deep");
}

// The library's parser goes one call deeper at each level: a thread with a small stack is enough
// as long as it stops at the first level that is too deep.
TEST(Yaml, NoKindOfNestingTakesMuchStack) {
  constexpr size_t kTextBytes = 128 * 1024;
  std::vector<std::string> texts;
  for (const char* piece : {"[",     "{",   "{a: ",    "[a: ",  "[{a: ",   "[\n", "{\n",
                            "[? ",   "{? ", "[: ",     "- ",    "? ",      "?\n", "- ? ",
                            "? - ",  ": ",  "a: ",     "a: - ", "\"a\": ", "&a ", "&a [",
                            "- &a ", "!a ", "!!seq [", "*a ",   "--- [",   "| ",  "> "}) {
    std::string& text = texts.emplace_back();
    while (text.size() < kTextBytes) text += piece;
  }
  for (const char* piece : {"a:\n", "-\n", "?\n"}) {
    std::string& text = texts.emplace_back();
    for (size_t indent = 0; text.size() < kTextBytes; ++indent) {
      text += std::string(indent, ' ') + piece;
    }
  }
  constexpr size_t kStackBytes = 512 * 1024;  // sanitizers take a few times what others do
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  const auto parse = [](void* text) -> void* {
    const auto& yaml = *static_cast<std::string*>(text);
    EXPECT_TRUE(ParseYaml(yaml).error) << yaml.substr(0, 20);
    return nullptr;
  };
  for (std::string& text : texts) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, &attributes, parse, &text), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
  }
  pthread_attr_destroy(&attributes);
}

TEST(Yaml, LongNamesAroundManyValuesAreAnError) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "{" + std::string(1000, 'a') + ": ";
  text += "[";
  for (int i = 0; i < 90'000; ++i) text += "1,";
  text += "1]" + std::string(60, '}');
  EXPECT_THAT(ErrorOf(text).message, HasSubstr("names of the fields around this one are too long"));
}

// A parser that searches the line of every quoted text and document from the top takes minutes for
// each.
TEST(Yaml, ManyQuotedLinesAndDocumentsAreReadInOneGo) {
  std::string quoted;
  for (size_t i = 0; i + 10 < kMaxYamlNodes; ++i) quoted += "- \"a\"\n";
  EXPECT_EQ(One(quoted).size(), kMaxYamlNodes - 10);
  std::string documents;
  for (size_t i = 0; i < 100'000; ++i) documents += "--- a\n";
  EXPECT_EQ(ParseYaml(documents).documents.size(), 100'000u);
  std::string comments = "a\n";
  for (size_t i = 0; i < 500'000; ++i) comments += "#\n";
  EXPECT_EQ(ParseYaml(comments + "--- b\n").documents.size(), 2u);
}

TEST(Yaml, WhatIsNotYamlHasALineAndASentence) {
  EXPECT_EQ(ErrorOf("a: 1\n b: 2\n").line, 2);
  EXPECT_THAT(ErrorOf("a: [1, 2\nb: 3\n").message, HasSubstr("']'"));
  EXPECT_THAT(ErrorOf("a: {b: 1\n").message, HasSubstr("'}'"));
  EXPECT_THAT(ErrorOf("a: \"text\nb: 1\n").message, HasSubstr("quote"));
  EXPECT_THAT(ErrorOf("a: &x 1\nb:\n  <<: *x\n").message, HasSubstr("merge keys"));
  EXPECT_THAT(ErrorOf("a: !!binary abc").message, HasSubstr("tags"));
  EXPECT_THAT(ErrorOf("a: 'x\nb: 1\n").message, HasSubstr("quote"));
  EXPECT_EQ(One("a: 'it''s\n  fine'"), (Json{{"a", "it's fine"}}));
  EXPECT_THAT(ErrorOf("? [a]\n: 1").message, HasSubstr("cannot be the name of a field"));
  EXPECT_EQ(ErrorOf("- a\nb: 1\n").line, 2);
  EXPECT_THAT(ErrorOf("---\n,a\n").message, HasSubstr("nothing can begin with this character"));
  EXPECT_THAT(ErrorOf("a: @x").message, HasSubstr("put it in quotes"));
  EXPECT_EQ(ErrorOf("a: 1\nb: \xff\n").line, 2);
  EXPECT_THAT(ErrorOf("a: \xed\xa0\x80").message, HasSubstr("UTF-8"));
  EXPECT_EQ(One("a: λ😀"), (Json{{"a", "λ😀"}}));
  EXPECT_THAT(ErrorOf(std::string_view("a: \0b", 5)).message, HasSubstr("zero bytes"));
}

}  // namespace
}  // namespace lambdadnn
