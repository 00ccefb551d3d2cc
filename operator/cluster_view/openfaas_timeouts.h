// SPDX-License-Identifier: Apache-2.0
// The time-outs of OpenFaaS' gateway and provider, as their Deployments say, and of watchdogs.
// Pure.
//
// A slice is longer than any of them may be: the operator asks for its lines by one request after
// another. So a time-out bounds no slice, but has to be longer than such a request.
#pragma once

#include <string>

#include "common/json/json_reader.h"

namespace lambdadnn {

// A request takes 0.75 s, and as long again on a busy machine for its connections and transfers.
inline constexpr double kLeastOpenFaasTimeoutSeconds = 2;
inline constexpr const char* kTimeoutRemedy =
    "set it to 5 s or more (docs/operations.md, OpenFaaS)";

struct OpenFaasTimeout {
  double seconds = 0;  // 0 = none is known
  std::string source = "";
};

// Takes those of a Deployment of OpenFaaS' own namespace that are shorter than `shortest`, of its
// containers of gateway and provider. Their variables are durations of Go or whole seconds; those
// that are not set, or make no sense, are not known.
void TakeTimeouts(const Json& deployment, OpenFaasTimeout* shortest);

// Known, and shorter than a request may take.
bool IsTooShort(double seconds);
// "upstream_timeout of container gateway is 1 s, and a request takes up to 2 s".
std::string TooShortText(double seconds, const std::string& source);

}  // namespace lambdadnn
