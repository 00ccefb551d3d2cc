// SPDX-License-Identifier: Apache-2.0
// Where the function in a pod is reached, as its pod and its labels say. Pure.
#pragma once

#include <optional>
#include <string>

#include "common/json/json_reader.h"

namespace lambdadnn {

// Empty = none yet.
std::string PodIpOf(const Json& pod);
// The port that a label of a pod names; nullopt where it names none.
std::optional<int> PortOf(const std::string& label);
// Where other functions of its job connect to it, "host:port"; empty = nowhere, or not yet.
std::string PeerAddressOf(const Json& pod);

}  // namespace lambdadnn
