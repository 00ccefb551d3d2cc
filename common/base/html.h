// SPDX-License-Identifier: Apache-2.0
// What pages of HTML are put together with.
#pragma once

#include <string>
#include <string_view>

namespace lambdadnn {

// Text made safe inside HTML and SVG.
std::string EscapeHtml(std::string_view text);

}  // namespace lambdadnn
