// SPDX-License-Identifier: Apache-2.0
// state.json of a run's folder, which another version of this program may have written: what its
// status says of progress in another form is left out (it is worked out anew), what the run cannot
// be gone on with without is an error that says what to do.
#pragma once

#include <string>
#include <string_view>

#include "common/json/json_reader.h"

namespace lambdadnn {

// For InMemoryApiServer::Restore. kInvalidArgument: no such file's text, or of a version that this
// one cannot go on from.
Result<Json> ReadRunState(std::string_view text);

}  // namespace lambdadnn
