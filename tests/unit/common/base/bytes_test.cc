// SPDX-License-Identifier: Apache-2.0
#include "common/base/bytes.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(Bytes, Xxh3MatchesThePublishedValueOfNothing) {
  EXPECT_EQ(Hex64(Xxh3({})), "2d06800538d394c2");
}

TEST(Bytes, StreamedChecksumEqualsTheWhole) {
  const Bytes whole = ToBytes("gradients up, weights down");
  Xxh3Stream stream;
  stream.Update(ByteView(whole).first(5));
  stream.Update({});
  stream.Update(ByteView(whole).subspan(5));
  EXPECT_EQ(stream.Digest(), Xxh3(whole));
}

TEST(Bytes, IntegersAreLittleEndian) {
  Bytes bytes(6);
  StoreLittleEndian<uint32_t>(bytes, 1, 0x01020304);
  EXPECT_EQ(bytes[1], std::byte{4});
  EXPECT_EQ(bytes[4], std::byte{1});
  EXPECT_EQ(LoadLittleEndian<uint32_t>(bytes, 1), 0x01020304u);
}

}  // namespace
}  // namespace lambdadnn
