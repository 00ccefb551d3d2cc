// SPDX-License-Identifier: Apache-2.0
// What HTML, SVG and XML are put together with.
#pragma once

#include <string>
#include <string_view>

namespace lambdadnn {

// Text as it may stand between tags and in quoted attributes.
std::string EscapeMarkup(std::string_view text);

}  // namespace lambdadnn
