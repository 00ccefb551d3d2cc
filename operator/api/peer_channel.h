// SPDX-License-Identifier: Apache-2.0
// Whether the functions of a job connect to each other, by its spec alone. Pure.
#pragma once

#include <string>

#include "operator/api/job.h"

namespace lambdadnn {

// Functions with Services of their own do not know where each other's pods are.
inline bool ConnectsFunctions(const JobSpec& spec) {
  return spec.peer_channel != PeerChannelMode::kNone && spec.addressing == Addressing::kPod;
}

// Why they do not, in words; empty = they do.
inline std::string WhyUnconnected(const JobSpec& spec) {
  if (ConnectsFunctions(spec)) return "";
  return spec.peer_channel == PeerChannelMode::kNone
             ? "spec.peerChannel is None"
             : "with spec.addressing Service functions do not know each other's addresses";
}

}  // namespace lambdadnn
