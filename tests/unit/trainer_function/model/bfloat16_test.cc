// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/bfloat16.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using testing::HasSubstr;

TEST(Bfloat16, PrecisionIsFloat32UnlessNamed) {
  EXPECT_EQ(ParsePrecision("").value(), Precision::kFloat32);
  EXPECT_EQ(ParsePrecision("float32").value(), Precision::kFloat32);
  EXPECT_EQ(ParsePrecision("bfloat16").value(), Precision::kBfloat16);
  EXPECT_EQ(ParsePrecision("bf16").status().message(),
            "LAMBDADNN_PRECISION must be float32 or bfloat16, not 'bf16'");
}

TEST(Bfloat16, InstructionsAreTheBestThatOneDnnMayUse) {
  struct Row {
    Bfloat16Support support;
    const char* instructions;
  };
  const Row rows[] = {
      {{false, false, ""}, ""},
      {{true, false, ""}, "avx512_bf16"},
      {{true, true, ""}, "amx_bf16"},
      {{true, true, "ALL"}, "amx_bf16"},
      {{true, true, "AVX512_CORE_AMX"}, "amx_bf16"},
      {{true, false, "AVX512_CORE_AMX"}, "avx512_bf16"},
      {{true, true, "AVX512_CORE_BF16"}, "avx512_bf16"},
      {{true, true, "avx512_core_fp16"}, "avx512_bf16"},
      {{true, true, "AVX512_CORE"}, ""},
      {{true, true, "AVX2"}, ""},
      {{false, false, "AVX512_CORE_AMX"}, ""},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Bfloat16InstructionsOf(row.support), row.instructions) << row.support.largest_isa;
  }
}

TEST(Bfloat16, WhatItLacksIsSaidWithWhatToDo) {
  EXPECT_TRUE(CheckBfloat16({true, "amx_bf16", true}).ok());
  struct Row {
    Bfloat16Means means;
    const char* says;
  };
  const Row rows[] = {
      {{false, "amx_bf16", true}, "is for processors; use float32 on GPUs"},
      {{true, "", true}, "AVX512_BF16 or AMX-BF16, which this one has not; use nodes that have it"},
      {{true, "amx_bf16", false}, "needs a LibTorch with oneDNN"},
  };
  for (const Row& row : rows) {
    const Status status = CheckBfloat16(row.means);
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << row.says;
    EXPECT_THAT(status.message(), HasSubstr(row.says));
  }
}

}  // namespace
}  // namespace lambdadnn
