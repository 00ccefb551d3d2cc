// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/function_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/files.h"
#include "operator/backends/local/host_client.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

std::string FileWith(const std::string& text) {
  const std::string path = MakeTempDir() + "/log";
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  return path;
}

TEST(ReadLastLines, GivesZeroOneManyAndAll) {
  const std::string path = FileWith("a\nb\nc\n");
  EXPECT_EQ(*ReadLastLines(path, 0), "");
  EXPECT_EQ(*ReadLastLines(path, 1), "c\n");
  EXPECT_EQ(*ReadLastLines(path, 2), "b\nc\n");
  EXPECT_EQ(*ReadLastLines(path, 3), "a\nb\nc\n");
  EXPECT_EQ(*ReadLastLines(path, 4), "a\nb\nc\n");
  EXPECT_EQ(*ReadLastLines(FileWith("a\nunfinished"), 1), "unfinished");
  EXPECT_EQ(*ReadLastLines(FileWith(""), 1), "");
  EXPECT_EQ(ReadLastLines("/nowhere/log", 1).status().code(), StatusCode::kNotFound);
}

TEST(LastLine, SkipsEmptyLines) {
  EXPECT_EQ(LastLine(FileWith("a\nlast words\n\n\n")), "last words");
  EXPECT_EQ(LastLine(FileWith("")), "");
  EXPECT_EQ(LastLine("/nowhere/log"), "");
}

TEST(ResidentBytesOf, IsZeroForNoProcess) {
  EXPECT_GT(ResidentBytesOf(::getpid()), 1'000'000);
  EXPECT_EQ(ResidentBytesOf(1 << 30), 0);
}

TEST(AnswersReady, IsFalseWhereNobodyListens) { EXPECT_FALSE(AnswersReady(1)); }

TEST(HostClient, SaysThatThereIsNoHost) {
  const auto answer = HostClient(MakeTempDir() + "/socket").Call("GET", "/v1/host");
  EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace lambdadnn
