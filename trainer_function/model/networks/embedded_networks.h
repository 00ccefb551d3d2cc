// SPDX-License-Identifier: Apache-2.0
// The files that networks.py has written, inside the program.
#pragma once

#include <string_view>

namespace lambdadnn {

// NAME.pt.gz; empty when there is no such network.
std::string_view EmbeddedNetwork(std::string_view name);

}  // namespace lambdadnn
