// SPDX-License-Identifier: Apache-2.0
// LDNN_CHECK: a broken invariant (a bug of ours, never bad input) ends the process with file, line
// and message. The platform restarts functions, which find their state in the store.
#pragma once

#include <string_view>

namespace lambdadnn {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view message);

}  // namespace lambdadnn

#define LDNN_CHECK(condition, message)                                     \
  do {                                                                     \
    if (!(condition)) {                                                    \
      ::lambdadnn::CheckFailed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                      \
  } while (false)
