// SPDX-License-Identifier: Apache-2.0
// Fields of status that an older CRD refuses from a newer operator (422): a value that its enum
// lacks, a type that has changed. Such a field is left out from then on, unless decisions depend on
// it, so that it does not block the job. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "common/json/json_reader.h"

namespace lambdadnn {

// Paths below status that were refused ("phase", "progress.loss") and on which no decision depends.
std::set<std::string> RefusedStatusFields(std::string_view message);
// By path the refused text, which another text may replace; "" = any value of the field is refused.
using RefusedFields = std::map<std::string, std::string>;
// Adds the fields that `message` names to `refused`, with their values in `patch`; false when none
// is new.
bool AddRefused(std::string_view message, const Json& patch, RefusedFields* refused);
// The refused fields that `patch` would write.
std::set<std::string> RefusedIn(const Json& patch, const RefusedFields& refused);
// Removes fields from a merge patch ({"status": …}); true when something of status is left.
bool DropStatusFields(const std::set<std::string>& fields, Json* patch);

}  // namespace lambdadnn
