// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/numerics_fingerprint.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(NumericsFingerprint, AreOneLineOfJson) {
  const NumericsFingerprint fingerprint = {"avx2", "1.13.1, OpenBLAS \"0.3.21\" Haswell"};
  const std::string text = EncodeFingerprint(fingerprint);
  EXPECT_EQ(text, "{\"isa\":\"avx2\",\"libtorch\":\"1.13.1, OpenBLAS \\\"0.3.21\\\" Haswell\"}\n");
  EXPECT_EQ(DecodeFingerprint(text), fingerprint);
  EXPECT_EQ(DecodeFingerprint(EncodeFingerprint({})), NumericsFingerprint{});
}

TEST(NumericsFingerprint, OfAnyOtherTextNothingIsSaid) {
  for (const char* text : {"ok\n", "", "[]", "null", "{", "{}", "{\"isa\": 5, \"libtorch\": null}",
                           "{\"isa\": \"\\ud800\"}"}) {
    EXPECT_EQ(DecodeFingerprint(text), NumericsFingerprint{}) << text;
  }
}

TEST(NumericsFingerprint, WhatANewerFunctionAddsIsPassedOver) {
  EXPECT_EQ(DecodeFingerprint("{\"isa\": \"avx2\", \"colour\": {\"a\": 1}}").isa, "avx2");
}

TEST(NumericsFingerprint, TextsThatStatusHasNoRoomForAreNotHeeded) {
  const NumericsFingerprint most = {std::string(kMaxIsaBytes, 'i'),
                                    std::string(kMaxLibtorchBytes, 'l')};
  EXPECT_EQ(DecodeFingerprint(EncodeFingerprint(most)), most);
  const NumericsFingerprint more = {most.isa + "i", most.libtorch + "l"};
  EXPECT_EQ(DecodeFingerprint(EncodeFingerprint(more)), NumericsFingerprint{});
}

TEST(NumericsFingerprint, AreDescribedInASentence) {
  EXPECT_EQ(DescribeFingerprint({"avx2", "1.0"}), "avx2 and LibTorch 1.0");
  EXPECT_EQ(DescribeFingerprint({}), "an unknown instruction set and an unknown LibTorch");
}

}  // namespace
}  // namespace lambdadnn
