// SPDX-License-Identifier: Apache-2.0
// Fields of the spec that earlier versions of the API had: refused with what to write instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lambdadnn {

// What to write instead of the field at `path` ("spec.profile.trainingRate.table[3].memoryMiB"), or
// nothing: there was no such field.
std::optional<std::string> InsteadOfRemovedField(std::string_view path);

}  // namespace lambdadnn
