// SPDX-License-Identifier: Apache-2.0
// tests/data/bad_manifests.yaml, with the exact lines that a command prints for each, and
// tests/data/good/NAME.yaml, which load and round-trip.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "common/base/files.h"
#include "common/json/yaml.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_file.h"
#include "operator/api/job_validation.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

std::vector<std::filesystem::path> GoodManifests() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(SourcePath("tests/data/good"))) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<JobFile> Load(const std::filesystem::path& file) {
  return ParseJobFile(*ReadFile(file.string()), file.filename().string(), "/jobs");
}

struct BadManifest {
  std::string name, text;
  std::string error;  // all lines
};

// What tests/data/bad_manifests.yaml says of one; it tells what its fields are.
std::string TextOf(const Json& entry, const std::string& good) {
  if (entry.contains("text")) return entry["text"];
  std::string replaced, by;
  if (entry.contains("add")) {
    std::string added = entry["add"];
    if (!added.ends_with('\n')) added += '\n';
    replaced = entry.contains("after") ? std::string(entry["after"]) + "\n" : good;
    by = replaced + added;
  } else {
    replaced = entry.at("replace");
    by = entry.value("by", "");
  }
  const size_t at = good.find(replaced);
  EXPECT_NE(at, std::string::npos) << replaced;
  EXPECT_EQ(good.find(replaced, at + 1), std::string::npos) << replaced;
  if (at == std::string::npos) return "";
  return good.substr(0, at) + by + good.substr(at + replaced.size());
}

std::vector<BadManifest> BadManifests() {
  const std::string good = *ReadFile(SourcePath("tests/data/good/minimal.yaml"));
  const auto parsed = ParseYaml(*ReadFile(SourcePath("tests/data/bad_manifests.yaml")));
  EXPECT_FALSE(parsed.error.has_value()) << parsed.error->message;
  std::vector<BadManifest> found;
  for (const auto& document : parsed.documents) {
    for (const auto& [name, entry] : document.value.items()) {
      const Json& error = entry.at("error");
      const Json lines = error.is_array() ? error : Json::array({error});
      std::string expected;
      for (const Json& line : lines) {
        expected += "error: " + name + ".yaml:" + std::string(line) + "\n";
      }
      found.push_back({name, TextOf(entry, good), expected});
    }
  }
  return found;
}

Result<JobFile> Load(const BadManifest& bad) {
  return ParseJobFile(bad.text, bad.name + ".yaml", "/jobs");
}

TEST(BadManifests, EachIsRefusedWithItsSentence) {
  const auto all = BadManifests();
  EXPECT_GE(all.size(), 135u);
  for (const auto& bad : all) {
    const auto loaded = Load(bad);
    ASSERT_FALSE(loaded.ok()) << bad.name;
    EXPECT_EQ(loaded.status().code(), StatusCode::kInvalidArgument) << bad.name;
    EXPECT_EQ("error: " + loaded.status().message() + "\n", bad.error) << bad.name;
  }
}

TEST(BadManifests, EveryLineNamesTheFileAndALine) {
  for (const auto& bad : BadManifests()) {
    const auto loaded = Load(bad);
    const std::string prefix = bad.name + ".yaml:";
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
  for (const auto& bad : BadManifests()) all += Load(bad).status().message() + "\n";
  for (const JobRule& rule : JobRules()) {
    // Rules about changes.
    if (std::string_view(rule.message).starts_with("cannot be ")) continue;
    std::string path = *rule.field == '\0' ? rule.path : std::string(rule.path) + "." + rule.field;
    while (path.find("[]") != std::string::npos) path.replace(path.find("[]"), 2, "[0]");
    EXPECT_NE(all.find(path + ": " + rule.message), std::string::npos) << path << rule.message;
  }
}

TEST(GoodManifests, LoadAndRoundTrip) {
  const auto files = GoodManifests();
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
