// SPDX-License-Identifier: Apache-2.0
// Credentials for an S3 store. Never logged, never part of a message.
#pragma once

#include <string>

namespace lambdadnn {

struct StoreCredentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // of temporary credentials; else empty
  // ARN of a role that they may assume, for servers whose AssumeRole wants one; else empty.
  std::string role_arn = "";
  friend bool operator==(const StoreCredentials&, const StoreCredentials&) = default;
};

}  // namespace lambdadnn
