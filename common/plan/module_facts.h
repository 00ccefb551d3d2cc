// SPDX-License-Identifier: Apache-2.0
// What is known of a user's module since its job began.
#pragma once

#include <string>

namespace lambdadnn {

struct ModuleFacts {
  // "sha256:" and 64 digits, of its bytes; empty = not known.
  std::string digest;
  // It passed in a confined process (trainer_function/model/script_trial.h), and need not again.
  bool tried = false;
  friend bool operator==(const ModuleFacts&, const ModuleFacts&) = default;
};
inline constexpr const char* kModuleDigestPrefix = "sha256:";

}  // namespace lambdadnn
