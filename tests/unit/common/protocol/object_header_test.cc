// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/object_header.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "common/base/files.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

ObjectHeader Example() {
  ObjectHeader header;
  header.job = 0x1122334455667788;
  header.plan_revision = 3;
  header.incarnation = 4;
  header.iteration = 120;
  header.base_version = 120;
  header.kind = ObjectKind::kGradient;
  header.layer = 1;
  header.shard = 2;
  header.rank = 5;
  header.elements = {16384, 32768};
  header.samples = 64;
  header.loss_sum = 12.5;
  header.stop_at = 122;
  header.stop_is_final = true;
  header.payload_bytes = 65536;
  header.payload_xxh3 = 0xfeedface;
  header.weights_xxh3 = 0xabcdef;
  return header;
}

using HeaderBytes = std::array<std::byte, kObjectHeaderBytes>;

HeaderBytes Encoded(const ObjectHeader& header) {
  HeaderBytes bytes{};
  EncodeHeader(header, bytes);
  return bytes;
}

TEST(ObjectHeader, RoundTrips) { EXPECT_EQ(DecodeHeader(Encoded(Example())).value(), Example()); }

TEST(ObjectHeader, FlagsAreIndependent) {
  for (const bool is_final : {false, true}) {
    for (const bool skips : {false, true}) {
      ObjectHeader header = Example();
      header.stop_is_final = is_final;
      header.skips_checkpoint = skips;
      EXPECT_EQ(DecodeHeader(Encoded(header)).value(), header);
    }
  }
}

TEST(ObjectHeader, BytesAreTheGoldenFile) {
  const std::string golden = ReadFile(SourcePath("tests/data/formats/object_header.bin")).value();
  const HeaderBytes bytes = Encoded(Example());
  EXPECT_EQ(std::string(AsText(bytes)), golden)
      << "the header's layout changed: stored objects could no longer be read";
  EXPECT_EQ(DecodeHeader(AsBytes(golden)).value(), Example());
}

TEST(ObjectHeader, EveryFlippedBitIsDetected) {
  for (size_t bit = 0; bit < kObjectHeaderBytes * 8; ++bit) {
    HeaderBytes bytes = Encoded(Example());
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_EQ(DecodeHeader(bytes).status().code(), StatusCode::kDataLoss) << "bit " << bit;
  }
}

TEST(ObjectHeader, EveryCutIsDetected) {
  const HeaderBytes bytes = Encoded(Example());
  for (size_t size = 0; size < kObjectHeaderBytes; ++size) {
    EXPECT_EQ(DecodeHeader(ByteView(bytes).first(size)).status().code(), StatusCode::kDataLoss);
  }
}

TEST(ObjectHeader, ImpossibleNumbersAreRefusedThoughTheChecksumHolds) {
  ObjectHeader header = Example();
  header.elements = {10, 9};
  EXPECT_EQ(DecodeHeader(Encoded(header)).status().code(), StatusCode::kDataLoss);
  header = Example();
  header.samples = -1;
  EXPECT_EQ(DecodeHeader(Encoded(header)).status().code(), StatusCode::kDataLoss);
  header = Example();
  header.kind = static_cast<ObjectKind>(7);
  EXPECT_EQ(DecodeHeader(Encoded(header)).status().code(), StatusCode::kDataLoss);
}

TEST(ObjectHeader, PayloadMustHaveLengthAndChecksum) {
  const Bytes payload = ToBytes("weights");
  ObjectHeader header = Example();
  header.payload_bytes = payload.size();
  header.payload_xxh3 = Xxh3(payload);
  EXPECT_TRUE(CheckPayload(header, payload).ok());
  EXPECT_EQ(CheckPayload(header, ByteView(payload).first(3)).code(), StatusCode::kDataLoss);
  Bytes torn = payload;
  torn[2] = std::byte{0};
  EXPECT_EQ(CheckPayload(header, torn).code(), StatusCode::kDataLoss);
}

RC_GTEST_PROP(ObjectHeader, AnyBytesAreSafeToDecode, (const std::vector<uint8_t>& bytes)) {
  const auto decoded = DecodeHeader(std::as_bytes(std::span(bytes)));
  RC_ASSERT(!decoded.ok());
}

}  // namespace
}  // namespace lambdadnn
