// SPDX-License-Identifier: Apache-2.0
// Whether this processor multiplies numbers of bfloat16, without which training in them would be
// emulated: slower than float32, and in other bits than elsewhere.
#pragma once

#include <string_view>

#include "common/base/status.h"
#include "common/plan/training_values.h"

namespace lambdadnn {

inline constexpr const char* kPrecisionVariable = "LAMBDADNN_PRECISION";

// The value of LAMBDADNN_PRECISION; empty = float32. kInvalidArgument for another name.
Result<Precision> ParsePrecision(std::string_view name);

// Most of what oneDNN may use, as its variable ONEDNN_MAX_CPU_ISA says (empty = all), of what the
// processor has.
struct Bfloat16Support {
  bool avx512_bf16 = false;
  bool amx_bf16 = false;
  std::string_view largest_isa = {};
};
// "amx_bf16", "avx512_bf16", or empty = neither.
std::string_view Bfloat16InstructionsOf(const Bfloat16Support& support);

// What oneDNN's products of bfloat16 use here, the best first: "amx_bf16" where the kernel lets
// this process have its registers, "avx512_bf16"; empty = neither, as on all but x86-64. Decides
// bits.
std::string_view Bfloat16Instructions();

// What a model in bfloat16 computes with.
struct Bfloat16Means {
  bool on_processor = true;       // not on a GPU
  std::string_view instructions;  // Bfloat16Instructions()
  bool has_onednn = true;         // LibTorch
};
// kFailedPrecondition, with what to do, when it has not what it needs.
Status CheckBfloat16(const Bfloat16Means& means);

}  // namespace lambdadnn
