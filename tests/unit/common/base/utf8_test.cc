// SPDX-License-Identifier: Apache-2.0
#include "common/base/utf8.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(Utf8, WhatIsNoneIsReplacedByteForByte) {
  struct Row {
    const char* text;
    size_t first_bad;
    const char* repaired;
  };
  constexpr size_t kNone = std::string_view::npos;
  for (const Row& row : {
           Row{"", kNone, ""},
           Row{"plain", kNone, "plain"},
           Row{"\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80", kNone,
               "\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80"},
           Row{"a\xFF"
               "b",
               1,
               "a\xEF\xBF\xBD"
               "b"},
           Row{"\xFF\xFE", 0, "\xEF\xBF\xBD\xEF\xBF\xBD"},
           Row{"cut \xE2\x82", 4, "cut \xEF\xBF\xBD\xEF\xBF\xBD"},
           Row{"overlong \xC0\xAF", 9, "overlong \xEF\xBF\xBD\xEF\xBF\xBD"},
           Row{"surrogate \xED\xA0\x80", 10, "surrogate \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
           Row{"beyond \xF4\x90\x80\x80", 7,
               "beyond \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
       }) {
    EXPECT_EQ(FirstInvalidUtf8(row.text), row.first_bad) << row.text;
    EXPECT_EQ(RepairUtf8(row.text), row.repaired) << row.text;
    EXPECT_EQ(FirstInvalidUtf8(RepairUtf8(row.text)), kNone) << row.text;
  }
}

TEST(Utf8, ACutLeavesWholeCharacters) {
  EXPECT_EQ(CutUtf8("abc", 3), "abc");
  EXPECT_EQ(CutUtf8("abc", 2), "ab");
  EXPECT_EQ(CutUtf8("a\xE2\x82\xAC", 3), "a");
  EXPECT_EQ(CutUtf8("a\xE2\x82\xAC", 4), "a\xE2\x82\xAC");
  EXPECT_EQ(CutUtf8("\xE2\x82\xAC", 0), "");
}

}  // namespace
}  // namespace lambdadnn
