// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/base/files.h"
#include "tests/support/object_frame.h"
#include "tests/support/paths.h"
#include "trainer_function/peer/peer_key.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

PeerHello ExampleHello() {
  PeerHello hello;
  hello.job = 0x1122334455667788;
  hello.plan_revision = 3;
  hello.incarnation = 4;
  hello.kind = RoleKind::kServer;
  hello.rank = 5;
  hello.attempt = 2;
  hello.invocation = "u.r3.i4.server-5.f120.a2";
  for (size_t i = 0; i < kNonceBytes; ++i) hello.nonce[i] = static_cast<std::byte>(i);
  return hello;
}

ExchangeObjectName ExampleDoorbell() { return {ObjectKind::kWeights, 121, 2, 3, 0}; }

std::vector<ExchangeObjectName> ExampleFound() {
  return {{ObjectKind::kWeights, 120, 2, 3, 0}, {ObjectKind::kWeights, 121, 2, 3, 0}};
}

Bytes ExampleHeader() {
  ObjectHeader header;
  header.job = 0x1122334455667788;
  header.iteration = 121;
  header.elements = {0, 2};
  header.payload_bytes = 8;
  header.payload_xxh3 = Xxh3(AsBytes("payload!"));
  Bytes encoded(kObjectHeaderBytes);
  EncodeHeader(header, encoded);
  return encoded;
}

Bytes Concat(std::initializer_list<Bytes> pieces) {
  Bytes all;
  for (const Bytes& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

Bytes Golden() {
  const PeerKeys keys = DerivePeerKeys("the key of a job");
  return Concat({EncodeFrame(FrameType::kHello, EncodeHello(ExampleHello())),
                 EncodeFrame(FrameType::kProof, HmacOf(keys.handshake, AsBytes("said"))),
                 EncodeFrame(FrameType::kPing, {}),
                 EncodeFrame(FrameType::kDoorbell, EncodeObjectName(ExampleDoorbell())),
                 EncodeFrame(FrameType::kPull, EncodeObjectName(ExampleDoorbell())),
                 EncodeObjectFrame(ExampleHeader(), AsBytes("payload!")),
                 EncodeFrame(FrameType::kDone, {}), EncodeFrame(FrameType::kFind, {}),
                 EncodeFrame(FrameType::kFound, EncodeObjectNames(ExampleFound()))});
}

FrameReader ReaderOfObjects() {
  FrameReader reader;
  reader.AllowObjects(kObjectHeaderBytes + 8);
  return reader;
}

TEST(Frame, BytesAreTheGoldenFile) {
  const std::string golden = ReadFile(SourcePath("tests/data/formats/peer_frames.bin")).value();
  EXPECT_EQ(std::string(AsText(Golden())), golden)
      << "the layout changed: functions of two images could not speak to each other";
  const std::vector<Frame> frames = ReaderOfObjects().Read(AsBytes(golden)).value();
  ASSERT_EQ(frames.size(), 9u);
  EXPECT_EQ(DecodeHello(frames[0].payload).value(), ExampleHello());
  EXPECT_EQ(frames[1].payload.size(), kProofBytes);
  EXPECT_EQ(frames[2], Frame{});
  EXPECT_EQ(DecodeObjectName(frames[3].payload).value(), ExampleDoorbell());
  EXPECT_EQ(DecodeObjectName(frames[4].payload).value(), ExampleDoorbell());
  EXPECT_EQ(DecodeHeader(frames[5].payload).value().iteration, 121);
  EXPECT_EQ(frames[6].type, FrameType::kDone);
  EXPECT_EQ(frames[7].type, FrameType::kFind);
  EXPECT_EQ(DecodeObjectNames(frames[8].payload).value(), ExampleFound());
}

TEST(Frame, ObjectsAreAsLongAsTheReaderAllows) {
  const Bytes object = EncodeObjectFrame(ExampleHeader(), AsBytes("payload!"));
  EXPECT_EQ(ObjectOfFrame(object).size(), kObjectHeaderBytes + 8);
  EXPECT_FALSE(FrameReader().Read(object).ok()) << "of one that it does not know";
  EXPECT_TRUE(ReaderOfObjects().Read(object).ok());
  EXPECT_FALSE(
      ReaderOfObjects().Read(EncodeObjectFrame(ExampleHeader(), AsBytes("a byte more"))).ok());
  Bytes shorter = object;
  StoreLittleEndian(MutableByteView(shorter), 0, static_cast<uint32_t>(kObjectHeaderBytes - 1));
  EXPECT_FALSE(ReaderOfObjects().Read(shorter).ok()) << "no header";
}

RC_GTEST_PROP(Frame, AnyPiecesAreTheSameFrames, ()) {
  const Bytes all = Golden();
  FrameReader reader = ReaderOfObjects();
  std::vector<Frame> frames;
  for (size_t at = 0; at < all.size();) {
    const size_t size = std::min(all.size() - at, *rc::gen::inRange<size_t>(1, 100));
    Result<std::vector<Frame>> some = reader.Read(ByteView(all).subspan(at, size));
    RC_ASSERT(some.ok());
    frames.insert(frames.end(), some->begin(), some->end());
    at += size;
  }
  RC_ASSERT(frames == ReaderOfObjects().Read(all).value());
  RC_ASSERT(reader.held() == 0u);
}

// Some of it is written where the reader has room for it, and some comes in between as ever.
TEST(Frame, AnObjectMayBeWrittenWhereItIsRead) {
  Bytes payload(size_t{900} << 10);
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 31 + 7);
  const Bytes all = EncodeObjectFrame(ExampleHeader(), payload);
  FrameReader reader;
  reader.AllowObjects(all.size());
  EXPECT_TRUE(reader.Room().empty()) << "before there is an object";
  std::vector<Frame> frames;
  ByteView rest(all);
  size_t in_place = 0;
  for (size_t turn = 0; !rest.empty(); ++turn) {
    const MutableByteView room = reader.Room();
    const size_t size = std::min<size_t>(rest.size(), turn == 0 ? 70 : 50'000);
    const bool fits = size <= room.size() && turn % 3 != 0;
    if (fits) std::ranges::copy(rest.first(size), room.begin());
    in_place += fits;
    frames = reader.Read(fits ? ByteView(room).first(size) : rest.first(size)).value();
    rest = rest.subspan(size);
  }
  EXPECT_GT(in_place, 5U);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_TRUE(std::ranges::equal(frames.front().payload, ObjectOfFrame(all)));
  EXPECT_EQ(frames.front().object_xxh3, Xxh3(payload));
  EXPECT_TRUE(reader.Room().empty()) << "after it";
}

TEST(Frame, WhatNoFrameBeginsWithIsRefusedByItsHeader) {
  struct Row {
    uint32_t length;
    uint8_t type;
    uint8_t reserved;
  };
  for (const Row& row : {Row{0, 0, 0}, Row{0, 10, 0}, Row{1, 8, 0}, Row{24 * kMostNames + 1, 9, 0},
                         Row{0, 255, 0}, Row{0, 3, 1}, Row{1, 3, 0}, Row{23, 4, 0}, Row{25, 4, 0},
                         Row{23, 5, 0}, Row{1, 7, 0}, Row{31, 2, 0}, Row{33, 2, 0}, Row{68, 1, 0},
                         Row{469, 1, 0}, Row{0xffffffff, 1, 0}, Row{0xffffffff, 4, 0}}) {
    Bytes header(kFrameHeaderBytes);
    StoreLittleEndian(MutableByteView(header), 0, row.length);
    StoreLittleEndian(MutableByteView(header), 4, row.type);
    StoreLittleEndian(MutableByteView(header), 7, row.reserved);
    EXPECT_EQ(FrameReader().Read(header).status().code(), StatusCode::kInvalidArgument)
        << row.length << " " << int{row.type};
  }
  EXPECT_FALSE(FrameReader().Read(AsBytes("GET / HTTP/1.1\r\n\r\n")).ok());
}

TEST(Frame, ListsOfNamesAreWholeAndBounded) {
  const std::vector<ExchangeObjectName> many(kMostNames + 1, ExampleDoorbell());
  Bytes list = EncodeObjectNames(many);
  EXPECT_EQ(DecodeObjectNames(list).value().size(), kMostNames);
  EXPECT_THAT(DecodeObjectNames({}).value(), testing::IsEmpty());
  list.pop_back();
  EXPECT_EQ(DecodeObjectNames(list).status().code(), StatusCode::kInvalidArgument);
}

TEST(Frame, NoMoreThanOneIsHeld) {
  FrameReader reader;
  const Bytes hello = EncodeFrame(FrameType::kHello, EncodeHello(ExampleHello()));
  ASSERT_TRUE(reader.Read(ByteView(hello).first(hello.size() - 1)).value().empty());
  EXPECT_EQ(reader.held(), hello.size() - 1);
}

TEST(Hello, OthersAreRefused) {
  const Bytes good = EncodeHello(ExampleHello());
  const auto with = [&](size_t at, int value) {
    Bytes changed = good;
    changed[at] = static_cast<std::byte>(value);
    return DecodeHello(changed).status().message();
  };
  EXPECT_THAT(with(0, 'X'), HasSubstr("no function of lambdadnn"));
  EXPECT_THAT(with(4, 1), HasSubstr("version 1"));
  EXPECT_THAT(with(6, static_cast<int>(RoleKind::kProfile)), HasSubstr("no role"));
  EXPECT_THAT(with(6, 9), HasSubstr("no role"));
  EXPECT_THAT(with(7, 1), HasSubstr("no role"));
  EXPECT_FALSE(DecodeHello({}).ok());
  EXPECT_FALSE(DecodeHello(ByteView(good).first(68)).ok());
}

TEST(ExchangeObjectName, OthersAreRefused) {
  const Bytes good = EncodeObjectName(ExampleDoorbell());
  for (const size_t at : {16, 18, 19, 20, 23}) {
    Bytes changed = good;
    changed[at] = std::byte{9};
    EXPECT_FALSE(DecodeObjectName(changed).ok()) << at;
  }
  for (const ObjectKind kind : {ObjectKind::kBuffers, ObjectKind::kOptimizer}) {
    EXPECT_FALSE(DecodeObjectName(EncodeObjectName({kind, 1, 0, 0, 0})).ok());
  }
  EXPECT_FALSE(DecodeObjectName(ByteView(good).first(23)).ok());
}

}  // namespace
}  // namespace lambdadnn
