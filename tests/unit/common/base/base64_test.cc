// SPDX-License-Identifier: Apache-2.0
#include "common/base/base64.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(Base64, RoundTripsEveryLength) {
  for (const char* text : {"", "a", "ab", "abc", "abcd", "\xff\x00z"}) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(text)), text);
  }
  EXPECT_EQ(EncodeBase64("abcd"), "YWJjZA==");
  for (const char* bad : {"a", "====", "ab=c", "YW=j", "Y!=="}) {
    EXPECT_EQ(DecodeBase64(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace lambdadnn
