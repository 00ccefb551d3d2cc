// SPDX-License-Identifier: Apache-2.0
// Writes images without loss.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/base/status.h"
#include "trainer_function/data/images/image.h"

namespace lambdadnn {

// `planes`: [channels, height, width], channels 1 or 3. DecodeImage gives the same pixels back.
Result<std::string> EncodePng(ImageSize size, int channels, std::span<const uint8_t> planes);

}  // namespace lambdadnn
