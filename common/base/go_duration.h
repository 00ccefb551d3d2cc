// SPDX-License-Identifier: Apache-2.0
// Durations as programs in Go are told them. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace lambdadnn {

// Seconds of "1m30s", "250ms", "1.5h", or of whole seconds without a unit ("60"); nullopt: it is
// none, or is negative.
std::optional<double> ParseGoDuration(std::string_view text);

}  // namespace lambdadnn
