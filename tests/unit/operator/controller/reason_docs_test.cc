// SPDX-License-Identifier: Apache-2.0
// Every reason that the controller can write into a condition or an event has an entry in
// docs/operations.md. Reasons are the words like `FunctionLost` between quotes in its sources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "common/base/files.h"
#include "common/base/text.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using ::testing::ContainsRegex;
using ::testing::SizeIs;

// Words of that form that are something else: types of conditions, phases, kinds, values of fields.
const std::set<std::string> kNoReasons = {
    "Accepted", "Always", "Complete", "Degraded", "Direct", "FailureTarget", "Failed", "Gone",
    "Local", "Never", "OnSuccess", "Pending", "Planning", "Profiling", "Provisioned", "Ready",
    "Running", "Started", "Starting", "Crashed", "Exited", "Suspending", "Suspended",
    "SuccessCriteriaMet", "True", "False", "Workers", "BSP", "Isolate", "NetworkPolicy",
    "ServiceAccount",
    // Words of the kubelet.
    "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ErrImagePull",
    "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable", "RunContainerError"};

std::string Source(const std::filesystem::path& file) { return ReadFile(file.string()).value(); }

void AddReasonsIn(const std::filesystem::path& file, std::set<std::string>* reasons) {
  static const std::regex word("\"([A-Z]+[a-z]+(?:[A-Z][a-zA-Z]*)*)\"");
  const std::string text = Source(file);
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) {
    if (!kNoReasons.contains((*at)[1])) reasons->insert((*at)[1]);
  }
}

// What is decided, shown and told.
std::set<std::string> ReasonsInSources() {
  std::set<std::string> reasons;
  AddReasonsIn(SourcePath("operator/backends/knative/job_isolation.cc"), &reasons);
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SourcePath("operator/controller"))) {
    const std::string name = entry.path().filename().string();
    const bool decides = name.starts_with("decide") || name == "status.cc" ||
                         name == "round_view.cc" || name == "support_limits.cc" ||
                         name == "reservation.cc" || name == "pending_functions.cc" ||
                         name.starts_with("admission") || name.starts_with("reconciler");
    if (!decides || entry.path().extension() != ".cc") continue;
    AddReasonsIn(entry.path(), &reasons);
  }
  return reasons;
}

// The cells after the reason, by reason.
std::map<std::string, std::vector<std::string>> Entries() {
  std::map<std::string, std::vector<std::string>> entries;
  const std::string text = Source(SourcePath("docs/operations.md"));
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
  const std::set<std::string> reasons = ReasonsInSources();
  EXPECT_GE(reasons.size(), 30u);
  for (const std::string& reason : reasons) {
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
  const std::set<std::string> reasons = ReasonsInSources();
  for (const auto& [reason, cells] : Entries()) {
    EXPECT_TRUE(reasons.contains(reason)) << reason << " stands in no source";
  }
}

}  // namespace
}  // namespace lambdadnn
