// SPDX-License-Identifier: Apache-2.0
// Decimals in JSON that must not be negative: times, rates, prices.
#pragma once

#include <string_view>

#include "common/json/json_reader.h"

namespace lambdadnn {

// As JsonReader::Optional, which refuses what is no finite number; so is a negative one.
bool ReadAmount(JsonReader& reader, std::string_view name, double* out);

}  // namespace lambdadnn
