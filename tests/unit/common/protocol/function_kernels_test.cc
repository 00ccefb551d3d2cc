// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/function_kernels.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(FunctionKernels, AreOneLineOfJson) {
  const FunctionKernels kernels = {"avx2", "1.13.1, OpenBLAS \"0.3.21\" Haswell"};
  const std::string text = EncodeKernels(kernels);
  EXPECT_EQ(text, "{\"isa\":\"avx2\",\"libtorch\":\"1.13.1, OpenBLAS \\\"0.3.21\\\" Haswell\"}\n");
  EXPECT_EQ(DecodeKernels(text), kernels);
  EXPECT_EQ(DecodeKernels(EncodeKernels({})), FunctionKernels{});
}

TEST(FunctionKernels, OfAnyOtherTextNothingIsSaid) {
  for (const char* text : {"ok\n", "", "[]", "null", "{", "{}", "{\"isa\": 5, \"libtorch\": null}",
                           "{\"isa\": \"\\ud800\"}"}) {
    EXPECT_EQ(DecodeKernels(text), FunctionKernels{}) << text;
  }
}

TEST(FunctionKernels, WhatANewerFunctionAddsIsPassedOver) {
  EXPECT_EQ(DecodeKernels("{\"isa\": \"avx2\", \"colour\": {\"a\": 1}}").isa, "avx2");
}

TEST(FunctionKernels, TextsThatStatusHasNoRoomForAreNotHeeded) {
  const FunctionKernels most = {std::string(kMaxIsaBytes, 'i'),
                                std::string(kMaxLibtorchBytes, 'l')};
  EXPECT_EQ(DecodeKernels(EncodeKernels(most)), most);
  const FunctionKernels more = {most.isa + "i", most.libtorch + "l"};
  EXPECT_EQ(DecodeKernels(EncodeKernels(more)), FunctionKernels{});
}

TEST(FunctionKernels, AreDescribedInASentence) {
  EXPECT_EQ(DescribeKernels({"avx2", "1.0"}), "avx2 and LibTorch 1.0");
  EXPECT_EQ(DescribeKernels({}), "an unknown instruction set and an unknown LibTorch");
}

}  // namespace
}  // namespace lambdadnn
