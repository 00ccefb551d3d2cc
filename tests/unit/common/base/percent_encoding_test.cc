// SPDX-License-Identifier: Apache-2.0
#include "common/base/percent_encoding.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(PercentEncode, EncodesWhatAQueryCannotHold) {
  EXPECT_EQ(PercentEncode("a-b_c.d~9"), "a-b_c.d~9");
  EXPECT_EQ(PercentEncode("a b&c=/\n\xff"), "a%20b%26c%3D%2F%0A%FF");
  EXPECT_EQ(PercentEncode("a/b c", "/"), "a/b%20c");
}

TEST(PercentDecode, IsTheWayBack) {
  EXPECT_EQ(PercentDecode("a%20b%26c%3D%2F%0A%fF"), "a b&c=/\n\xff");
  EXPECT_EQ(PercentDecode(""), "");
  EXPECT_EQ(PercentDecode("a+b"), "a+b");
  for (const char* odd : {"%", "a%", "a%2", "%2g", "%g2", "%%20"}) {
    EXPECT_EQ(PercentDecode(odd), std::nullopt) << odd;
  }
}

}  // namespace
}  // namespace lambdadnn
