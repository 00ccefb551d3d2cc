// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/handshake.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

PeerHello HelloOf(RoleKind kind, int rank, int nonce) {
  PeerHello hello;
  hello.job = 7;
  hello.kind = kind;
  hello.rank = rank;
  hello.invocation = "u." + std::to_string(rank);
  hello.nonce[0] = static_cast<std::byte>(nonce);
  return hello;
}

Status Anybody(const PeerHello&) { return OkStatus(); }

PeerSecret KeyOf(std::string_view job_key) { return DerivePeerKeys(job_key).handshake; }

struct Pair {
  explicit Pair(std::string_view dialer_key = "key", std::string_view acceptor_key = "key",
                PeerHandshake::Check check = Anybody)
      : dialer(HandshakeSide::kDialer, KeyOf(dialer_key), HelloOf(RoleKind::kWorker, 3, 1),
               Anybody),
        acceptor(HandshakeSide::kAcceptor, KeyOf(acceptor_key), HelloOf(RoleKind::kServer, 0, 2),
                 std::move(check)) {}
  PeerHandshake dialer;
  PeerHandshake acceptor;
};

std::vector<Frame> Frames(const Bytes& bytes) { return FrameReader().Read(bytes).value(); }

// What `to` answers to all of it.
Result<Bytes> Give(PeerHandshake& to, const std::vector<Frame>& frames) {
  Bytes answer;
  for (const Frame& frame : frames) {
    LDNN_ASSIGN_OR_RETURN(const Bytes part, to.Take(frame));
    answer.insert(answer.end(), part.begin(), part.end());
  }
  return answer;
}

TEST(PeerHandshake, BothLearnWhoTheOtherIs) {
  Pair pair;
  EXPECT_TRUE(pair.acceptor.Begin().empty());
  const Bytes second = Give(pair.acceptor, Frames(pair.dialer.Begin())).value();
  EXPECT_FALSE(pair.acceptor.done());
  const Bytes third = Give(pair.dialer, Frames(second)).value();
  EXPECT_TRUE(pair.dialer.done());
  EXPECT_TRUE(Give(pair.acceptor, Frames(third)).value().empty());
  EXPECT_TRUE(pair.acceptor.done());
  EXPECT_EQ(pair.dialer.peer()->kind, RoleKind::kServer);
  EXPECT_EQ(pair.acceptor.peer()->rank, 3);
  EXPECT_FALSE(pair.acceptor.Take(Frame{}).ok()) << "it is over";
}

TEST(PeerHandshake, AnotherKeyIsNoProof) {
  Pair pair("key", "another");
  const Bytes second = Give(pair.acceptor, Frames(pair.dialer.Begin())).value();
  EXPECT_EQ(Give(pair.dialer, Frames(second)).status().code(), StatusCode::kUnauthenticated);
  EXPECT_FALSE(pair.dialer.done());
}

TEST(PeerHandshake, AProofIsWorthNothingInAnotherHandshake) {
  Pair first;
  const Bytes second = Give(first.acceptor, Frames(first.dialer.Begin())).value();
  const Bytes proof = Give(first.dialer, Frames(second)).value();
  // The same dialer's words, said again to an acceptor with another nonce.
  PeerHandshake later(HandshakeSide::kAcceptor, KeyOf("key"), HelloOf(RoleKind::kServer, 0, 3),
                      Anybody);
  ASSERT_TRUE(Give(later, Frames(first.dialer.Begin())).ok());
  EXPECT_EQ(Give(later, Frames(proof)).status().code(), StatusCode::kUnauthenticated);
}

TEST(PeerHandshake, AnAcceptorsOwnProofIsNoAnswer) {
  Pair pair;
  const std::vector<Frame> said = Frames(Give(pair.acceptor, Frames(pair.dialer.Begin())).value());
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(pair.acceptor.Take(said[1]).status().code(), StatusCode::kUnauthenticated);
}

TEST(PeerHandshake, WhatIsChangedOnTheWayIsFound) {
  for (const size_t at : {8, 16, 24, 28, 32, 36, 68}) {
    Pair pair;
    std::vector<Frame> first = Frames(pair.dialer.Begin());
    first[0].payload[at] ^= std::byte{1};
    const Bytes second = Give(pair.acceptor, first).value();
    EXPECT_EQ(Give(pair.dialer, Frames(second)).status().code(), StatusCode::kUnauthenticated)
        << at;
  }
}

TEST(PeerHandshake, OutOfTurn) {
  const Bytes proof = EncodeFrame(FrameType::kProof, PeerSecret{});
  for (const Bytes& early : {proof, EncodeFrame(FrameType::kPing, {}),
                             EncodeFrame(FrameType::kDoorbell, EncodeObjectName({}))}) {
    Pair pair;
    EXPECT_EQ(Give(pair.acceptor, Frames(early)).status().code(), StatusCode::kInvalidArgument);
    ASSERT_TRUE(Give(pair.acceptor, Frames(pair.dialer.Begin())).ok());
    if (early != proof) {
      EXPECT_FALSE(Give(pair.acceptor, Frames(early)).ok());
    }
    EXPECT_FALSE(Give(pair.acceptor, Frames(pair.dialer.Begin())).ok()) << "a second hello";
  }
}

TEST(PeerHandshake, WhoIsNotExpectedIsAnsweredNothing) {
  Pair pair("key", "key", [](const PeerHello& hello) {
    return hello.rank == 3 ? PermissionDeniedError("not here") : OkStatus();
  });
  EXPECT_EQ(Give(pair.acceptor, Frames(pair.dialer.Begin())).status(),
            PermissionDeniedError("not here"));
}

TEST(PeerKeys, AreNeitherTheJobsKeyNorEachOther) {
  const PeerKeys keys = DerivePeerKeys("key");
  EXPECT_NE(keys.handshake, keys.tls);
  EXPECT_NE(keys.tls, DerivePeerKeys("kez").tls);
  EXPECT_TRUE(IsSameSecret(keys.tls, DerivePeerKeys("key").tls));
  EXPECT_FALSE(IsSameSecret(keys.tls, ByteView(keys.tls).first(31)));
}

}  // namespace
}  // namespace lambdadnn
