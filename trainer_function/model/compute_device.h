// SPDX-License-Identifier: Apache-2.0
// What a worker's models compute on. The exchange between functions does not see it: weights and
// gradients are vectors in the host's memory either way.
#pragma once

#include <string_view>

#include "common/base/enum_names.h"
#include "common/base/status.h"

namespace lambdadnn {

// kCuda: the first of NVIDIA's GPUs that the process sees (CUDA_VISIBLE_DEVICES).
enum class ComputeDevice { kCpu, kCuda };
template <>
inline constexpr auto kEnumNames<ComputeDevice> = EnumNameTable("cpu", "cuda");

inline constexpr const char* kDeviceVariable = "LAMBDADNN_DEVICE";

// The value of LAMBDADNN_DEVICE; empty = cpu. kInvalidArgument for a device of another name.
Result<ComputeDevice> ParseDevice(std::string_view name);

}  // namespace lambdadnn
