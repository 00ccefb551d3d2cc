// SPDX-License-Identifier: Apache-2.0
// Every reason of a condition or an event has an entry in docs/operations.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "common/base/files.h"
#include "common/base/text.h"
#include "operator/api/reason.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using ::testing::ContainsRegex;
using ::testing::SizeIs;

// The cells after the reason, by reason.
std::map<std::string, std::vector<std::string>> Entries() {
  std::map<std::string, std::vector<std::string>> entries;
  const std::string text = ReadFile(SourcePath("docs/operations.md")).value();
  for (const std::string& line : Split(text.substr(text.find("## Troubleshooting")), '\n')) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (const std::string& cell : Split(line, '|')) cells.emplace_back(Trim(cell));
    const std::string reason = cells.at(1).substr(1, cells.at(1).size() - 2);
    EXPECT_FALSE(entries.contains(reason)) << reason << " has two entries";
    entries[reason] = {cells.begin() + 2, cells.end() - 1};
  }
  return entries;
}

TEST(ReasonDocs, EveryReasonHasAnEntryThatSaysWhatToDo) {
  const auto entries = Entries();
  for (const ReasonRow& row : AllReasons()) {
    const std::string reason = row.text;
    const auto found = entries.find(reason);
    ASSERT_NE(found, entries.end())
        << reason << " has no entry in docs/operations.md: what it means, what to do";
    ASSERT_THAT(found->second, SizeIs(3)) << reason;
    EXPECT_THAT(found->second[0], ContainsRegex("(True|False)")) << reason;
    for (const std::string& cell : found->second) {
      EXPECT_TRUE(cell.ends_with(".") || cell.ends_with("`.") || &cell == &found->second[0])
          << reason << ": \"" << cell << "\" is no sentence";
    }
  }
}

TEST(ReasonDocs, NoEntryIsAboutAReasonThatIsNoMore) {
  for (const auto& [reason, cells] : Entries()) {
    EXPECT_NE(FindReason(reason), nullptr) << reason << " is no reason";
  }
}

TEST(ReasonDocs, AReasonIsFoundByItsText) {
  for (const ReasonRow& row : AllReasons()) {
    ASSERT_NE(FindReason(row.text), nullptr) << row.text;
    EXPECT_EQ(FindReason(row.text)->reason, row.reason) << "two rows say " << row.text;
  }
  EXPECT_EQ(FindReason("OfALaterVersion"), nullptr);
}

}  // namespace
}  // namespace lambdadnn
