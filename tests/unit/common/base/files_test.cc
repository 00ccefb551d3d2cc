// SPDX-License-Identifier: Apache-2.0
#include "common/base/files.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace lambdadnn {
namespace {

TEST(Files, WritesReplaceTheWholeFileAndMakeFolders) {
  const std::string path = testing::TempDir() + "/files_test/a/b.txt";
  std::filesystem::remove_all(testing::TempDir() + "/files_test");
  ASSERT_TRUE(WriteFileAtomically(path, "a longer first content").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "short", true).ok());
  EXPECT_EQ(ReadFile(path).value(), "short");
  int files = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(path).parent_path())) {
    ++files;
  }
  EXPECT_EQ(files, 1) << "a temporary file was left behind";
}

TEST(Files, AMissingFileIsNotFoundAndNamed) {
  const auto content = ReadFile("/nonexistent/file");
  EXPECT_EQ(content.status().code(), StatusCode::kNotFound);
  EXPECT_NE(content.status().message().find("/nonexistent/file"), std::string::npos);
}

TEST(Files, AnUnwritablePlaceIsAnErrorNotACrash) {
  EXPECT_FALSE(WriteFileAtomically("/proc/nothing/here", "x").ok());
}

}  // namespace
}  // namespace lambdadnn
