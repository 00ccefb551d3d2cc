// SPDX-License-Identifier: Apache-2.0
// Request and answer of AssumeRole at a Security Token Service (sts.h).
#pragma once

#include <cstddef>
#include <string>

#include "common/base/store_credentials.h"

namespace lambdadnn {

// The least that servers grant.
inline constexpr int kMinRoleSeconds = 900;
// A longer policy is refused (AWS), so that none is sent.
inline constexpr size_t kMaxRolePolicyCharacters = 2048;

struct AssumedRole {
  std::string policy;  // IAM, JSON
  int duration_seconds = kMinRoleSeconds;
  // The name of the credentials' user in the store's audit log: 2 to 64 letters, digits and _+=,.@-
  // (AWS).
  std::string session_name = "lambdadnn";
};

struct TemporaryCredentials {
  StoreCredentials credentials;
  // How long they are good for, from when they were asked for: by the server's own clock, whatever
  // the time is here.
  double lifetime_seconds = 0;
};

}  // namespace lambdadnn
