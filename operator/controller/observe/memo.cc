// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/memo.h"

namespace lambdadnn {

bool IsRefusedStart(const Memo& memo) {
  return memo.start_since.has_value() && memo.start_error.code() == StatusCode::kResourceExhausted;
}

}  // namespace lambdadnn
