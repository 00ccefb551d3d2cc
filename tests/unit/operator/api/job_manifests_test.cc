// SPDX-License-Identifier: Apache-2.0
// tests/data/bad/NAME.yaml with the exact lines a command prints for it in NAME.txt, and
// tests/data/good/NAME.yaml, which load and round-trip.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "common/base/files.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_file.h"
#include "operator/api/job_validation.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

std::vector<std::filesystem::path> Manifests(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(SourcePath("tests/data/" + folder))) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<JobFile> Load(const std::filesystem::path& file) {
  return ParseJobFile(*ReadFile(file.string()), file.filename().string(), "/jobs");
}

TEST(BadManifests, EachIsRefusedWithItsSentence) {
  const auto files = Manifests("bad");
  EXPECT_GE(files.size(), 60u);
  for (const auto& file : files) {
    const auto loaded = Load(file);
    ASSERT_FALSE(loaded.ok()) << file.filename();
    EXPECT_EQ(loaded.status().code(), StatusCode::kInvalidArgument) << file.filename();
    std::filesystem::path expected = file;
    expected.replace_extension(".txt");
    const auto text = ReadFile(expected.string());
    ASSERT_TRUE(text.ok()) << text.status().ToString();
    EXPECT_EQ("error: " + loaded.status().message() + "\n", *text) << file.filename();
  }
}

TEST(BadManifests, EveryLineNamesTheFileAndALine) {
  for (const auto& file : Manifests("bad")) {
    const auto loaded = Load(file);
    const std::string prefix = file.filename().string() + ":";
    std::string message = "\nerror: " + loaded.status().message();
    for (size_t at = message.find("\nerror: "); at != std::string::npos;
         at = message.find("\nerror: ", at + 1)) {
      const std::string line = message.substr(at + 8);
      EXPECT_TRUE(line.starts_with(prefix)) << line;
      EXPECT_TRUE(line.size() > prefix.size() && std::isdigit(line[prefix.size()])) << line;
    }
  }
}

// Each rule of the CRD that a fresh job can break is broken by one of the manifests.
TEST(BadManifests, EveryRuleBetweenFieldsIsBrokenBySome) {
  std::string all;
  for (const auto& file : Manifests("bad")) all += Load(file).status().message() + "\n";
  for (const JobRule& rule : JobRules()) {
    if (std::string_view(rule.message).starts_with("cannot be changed")) continue;
    const std::string path =
        *rule.field == '\0' ? rule.path : std::string(rule.path) + "." + rule.field;
    EXPECT_NE(all.find(path + ": " + rule.message), std::string::npos) << path << rule.message;
  }
}

TEST(GoodManifests, LoadAndRoundTrip) {
  const auto files = Manifests("good");
  EXPECT_GE(files.size(), 20u);
  for (const auto& file : files) {
    const auto loaded = Load(file);
    ASSERT_TRUE(loaded.ok()) << file.filename() << loaded.status().ToString();
    const Json encoded = EncodeJob(loaded->job);
    const auto again = DecodeJob(*ParseJson(encoded.dump()));
    ASSERT_TRUE(again.ok()) << file.filename() << again.status().ToString();
    EXPECT_EQ(*again, loaded->job) << file.filename();
    Json accepted = encoded;
    accepted.erase("status");
    EXPECT_EQ(ToStatus(ValidateJob(accepted)).message(), "") << file.filename();
  }
}

}  // namespace
}  // namespace lambdadnn
