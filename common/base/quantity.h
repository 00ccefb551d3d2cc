// SPDX-License-Identifier: Apache-2.0
// Memory as Kubernetes quantities ("1728Mi", "2Gi", "1.5Gi", "2048M", "1811939328"). Functions are
// sized in whole MiB, so a quantity between two MiB is refused there rather than rounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace lambdadnn {

// kInvalidArgument with a sentence that says what to write.
Result<int> ParseMemoryMib(std::string_view quantity);
// What others measured, e.g. a node's "16268452Ki": whole MiB, rounded down.
Result<int64_t> ParseMemoryMibRoundedDown(std::string_view quantity);
// Any amount of memory, in MiB: "1536Ki" -> 1.5.
Result<double> ParseMebibytes(std::string_view quantity);
// Any quantity in its base unit: "1500m" -> 1.5, "2Gi" -> 2147483648, "1e3" -> 1000.
// kInvalidArgument: none, or negative.
Result<double> ParseQuantity(std::string_view quantity);
// 1728 -> "1728Mi".
std::string FormatMemoryMib(int memory_mib);
// Rounded up to a whole KiB, which ParseMebibytes reads back: 1.5 -> "1536Ki", 2 -> "2Mi".
std::string FormatMebibytes(double memory_mib);
double RoundedUpToKib(double memory_mib);

}  // namespace lambdadnn
