// SPDX-License-Identifier: Apache-2.0
// What an older CRD refuses of a newer operator's status (422): a value that its enum lacks, a type
// that has changed. What the job can do without is left out from then on, so that one such field
// does not hold up the job; what decisions are remembered in is never left out. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "common/json/json_reader.h"

namespace lambdadnn {

// Paths below status that a refusal's causes name ("phase", "progress.loss") and that the job can
// do without.
std::set<std::string> RefusedStatusFields(std::string_view message);
// By path the text that was refused, which another text may replace; "" = whatever is written
// there.
using RefusedFields = std::map<std::string, std::string>;
// Those of `message`, with what `patch` holds there, join `refused`; false when none is new.
bool AddRefused(std::string_view message, const Json& patch, RefusedFields* refused);
// Those that `patch` would write.
std::set<std::string> RefusedIn(const Json& patch, const RefusedFields& refused);
// Takes them out of a merge patch ({"status": …}); true when something of status is left.
bool DropStatusFields(const std::set<std::string>& fields, Json* patch);

}  // namespace lambdadnn
