// SPDX-License-Identifier: Apache-2.0
// state.json of a run's folder, which another version of this program may have written. Progress in
// an unknown form is dropped and computed again; an unreadable field that the run needs is an error
// that says what to do.
#pragma once

#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

// For InMemoryApiServer::Restore. kInvalidArgument: no such file's text, or of a version that this
// one cannot go on from. `idle`: since the run ended, which is none of the job's time; its creation
// is put as much later.
Result<Json> ReadRunState(std::string_view text, Duration idle = {});

}  // namespace lambdadnn
