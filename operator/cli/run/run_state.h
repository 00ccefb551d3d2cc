// SPDX-License-Identifier: Apache-2.0
// state.json of a run's folder, which another version of this program may have written. Progress in
// an unknown form is dropped and computed again; an unreadable field that the run needs is an error
// that says what to do.
#pragma once

#include <string>
#include <string_view>

#include "common/json/json_reader.h"

namespace lambdadnn {

// For InMemoryApiServer::Restore. kInvalidArgument: no such file's text, or of a version that this
// one cannot go on from.
Result<Json> ReadRunState(std::string_view text);

}  // namespace lambdadnn
