// SPDX-License-Identifier: Apache-2.0
// Fields of jobs and platform files that earlier versions had: refused with what to write instead.
#pragma once

#include <string_view>
#include <vector>

#include "common/json/json_reader.h"

namespace lambdadnn {

bool IsRemovedField(std::string_view path);
// Says so in the errors about unknown fields, whose paths lie below `root` ("platform.") or begin
// with it.
void SayInsteadOfRemovedFields(std::string_view root, std::vector<FieldError>* errors);

}  // namespace lambdadnn
