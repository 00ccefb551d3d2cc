// SPDX-License-Identifier: Apache-2.0
#include "common/base/files.h"

#include <gtest/gtest.h>

#include <cstdlib>
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

TEST(Files, ASecretIsAVariableOrTheFileThatAnotherOneNames) {
  const std::string file = testing::TempDir() + "/files_test_secret";
  ASSERT_TRUE(WriteFileAtomically(file, "of the file\n").ok());
  ASSERT_EQ(::setenv("LAMBDADNN_TEST_SECRET_FILE", file.c_str(), 1), 0);
  EXPECT_EQ(GetSecret("LAMBDADNN_TEST_SECRET").value(), "of the file");
  ASSERT_EQ(::setenv("LAMBDADNN_TEST_SECRET", "of the variable", 1), 0);
  EXPECT_EQ(GetSecret("LAMBDADNN_TEST_SECRET").value(), "of the variable");
  ::unsetenv("LAMBDADNN_TEST_SECRET");
  ASSERT_EQ(::setenv("LAMBDADNN_TEST_SECRET_FILE", "/nonexistent/secret", 1), 0);
  EXPECT_NE(
      GetSecret("LAMBDADNN_TEST_SECRET").status().message().find("LAMBDADNN_TEST_SECRET_FILE"),
      std::string::npos);
  ::unsetenv("LAMBDADNN_TEST_SECRET_FILE");
  EXPECT_EQ(GetSecret("LAMBDADNN_TEST_SECRET").value(), std::nullopt);
}

}  // namespace
}  // namespace lambdadnn
