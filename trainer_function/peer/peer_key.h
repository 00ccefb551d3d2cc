// SPDX-License-Identifier: Apache-2.0
// Keys of the peer channel: both derived from the key of the job, which never leaves the process,
// so that neither tells the job's key or the other one. Never logged.
#pragma once

#include <array>
#include <string_view>

#include "common/base/bytes.h"

namespace lambdadnn {

using PeerSecret = std::array<std::byte, 32>;

struct PeerKeys {
  PeerSecret handshake{};  // of the proofs
  PeerSecret tls{};        // TLS 1.3's pre-shared key
};

// `job_key` is not empty.
PeerKeys DerivePeerKeys(std::string_view job_key);

// HMAC with SHA-256.
PeerSecret HmacOf(ByteView key, ByteView bytes);
// In a time that does not depend on where they differ.
bool IsSameSecret(ByteView a, ByteView b);

}  // namespace lambdadnn
