// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/watch_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr std::string_view kStream =
    R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}})"
    "\n"
    R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}})"
    "\r\n\n"
    R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})"
    "\n";

TEST(WatchDecoder, LinesComeWholeHoweverTheyAreCut) {
  for (size_t piece = 1; piece <= kStream.size(); ++piece) {
    WatchDecoder decoder;
    std::vector<WatchEvent> events;
    for (size_t at = 0; at < kStream.size(); at += piece) {
      ASSERT_TRUE(decoder.Append(AsBytes(kStream.substr(at, piece)), &events).ok());
    }
    ASSERT_EQ(events.size(), 3u) << piece;
    EXPECT_EQ(events[0].kind, WatchEvent::Kind::kAdded);
    EXPECT_EQ(events[0].object["metadata"]["name"], "a");
    EXPECT_EQ(events[1].kind, WatchEvent::Kind::kBookmark);
    EXPECT_EQ(events[1].object["metadata"]["resourceVersion"], "7");
    EXPECT_EQ(events[2].kind, WatchEvent::Kind::kError);
    EXPECT_EQ(events[2].object["code"], 410);
  }
}

TEST(WatchDecoder, ALongLineIsOneEvent) {
  const std::string name(3'000'000, 'x');
  const std::string line =
      R"({"type":"MODIFIED","object":{"metadata":{"name":")" + name + "\"}}}\n";
  WatchDecoder decoder;
  std::vector<WatchEvent> events;
  for (size_t at = 0; at < line.size(); at += 65536) {
    ASSERT_TRUE(decoder.Append(AsBytes(std::string_view(line).substr(at, 65536)), &events).ok());
  }
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].object["metadata"]["name"], name);
}

// In fields that the API server does not validate; another job's event must still arrive.
TEST(WatchDecoder, AnObjectOfAThousandLevelsIsCutAndHoldsUpNoOther) {
  std::string line = R"({"type":"ADDED","object":{"metadata":{"name":"a"},"spec":{"affinity":)";
  for (int i = 0; i < 1000; ++i) line += R"({"a":)";
  line += "1" + std::string(1000, '}') + "}}}\n";
  WatchDecoder decoder;
  std::vector<WatchEvent> events;
  ASSERT_TRUE(decoder.Append(AsBytes(line + std::string(kStream)), &events).ok());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].object["metadata"]["name"], "a");
  EXPECT_TRUE(events[0].object["spec"]["affinity"]["a"].is_object());
}

TEST(WatchDecoder, AnUnfinishedLineIsNoEvent) {
  WatchDecoder decoder;
  std::vector<WatchEvent> events;
  ASSERT_TRUE(decoder.Append(AsBytes(kStream.substr(0, kStream.find('\n'))), &events).ok());
  EXPECT_TRUE(events.empty());
}

TEST(WatchDecoder, ATypeOfLaterServersIsPassedOver) {
  WatchDecoder decoder;
  std::vector<WatchEvent> events;
  ASSERT_TRUE(decoder.Append(AsBytes("{\"type\":\"NOVEL\",\"object\":{}}\n"), &events).ok());
  ASSERT_TRUE(decoder.Append(AsBytes(kStream), &events).ok());
  EXPECT_EQ(events.size(), 3u);
}

TEST(WatchDecoder, WhatIsNoWatchIsShown) {
  for (const std::string line : {"<html>busy</html>", "[]", "{\"type\":1,\"object\":{}}",
                                 "{\"type\":\"ADDED\"}", "{\"type\":\"ADDED\",\"object\":[]}"}) {
    WatchDecoder decoder;
    std::vector<WatchEvent> events;
    const Status status = decoder.Append(AsBytes(line + "\n"), &events);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << line;
    EXPECT_THAT(status.message(), HasSubstr(line));
  }
}

}  // namespace
}  // namespace lambdadnn
