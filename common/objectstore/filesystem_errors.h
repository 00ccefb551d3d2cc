// SPDX-License-Identifier: Apache-2.0
// errno as a Status, for the files that make up FilesystemObjectStore.
#pragma once

#include <string>

#include "common/base/status.h"

namespace lambdadnn {

// "doing: reason; what to do". kNotFound, kPermissionDenied, kResourceExhausted (disk or quota
// full, no more file descriptors), kInvalidArgument (name too long), else kUnavailable.
Status ErrnoStatus(const std::string& doing, int error);

}  // namespace lambdadnn
