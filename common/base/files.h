// SPDX-License-Identifier: Apache-2.0
// Files and the process environment, for the edges of the programs (CLI, host, report writers).
// Data-path objects go through common/objectstore instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace lambdadnn {

// The whole file. kNotFound, kPermissionDenied or kUnavailable, naming the path.
Result<std::string> ReadFile(const std::string& path);
// Replaces the file atomically: readers see the old or the new content, never a part. Parent
// folders are made. With `sync` the content survives a power cut once this returns.
Status WriteFileAtomically(const std::string& path, std::string_view content, bool sync = false);

std::optional<std::string> GetEnvironment(const std::string& name);
// The variable NAME, or else the content of the file that NAME_FILE names, without the line's end:
// platforms that hand secrets to their functions do so by files. Nothing without both; an error of
// the file names the variable.
Result<std::optional<std::string>> GetSecret(const std::string& name);

}  // namespace lambdadnn
