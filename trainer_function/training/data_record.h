// SPDX-License-Identifier: Apache-2.0
// Detects changed training data. A worker's first slice of a plan revision writes the checksum of
// its samples under the job's records; every later slice compares. A function that loads data which
// has changed, in place of another or when a run is resumed, therefore fails the job before a
// gradient of other data is computed.
#pragma once

#include <string>

#include "common/base/status.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// "<prefix>/records/data.r<revision>.worker-<rank>": 16 hexadecimal digits of the checksum, then 16
// of the XXH3 of these (a damaged record is written anew). Another revision may give a rank other
// samples, so it has records of its own.
std::string DataRecordKey(const RoleContext& context);

// After the data set is loaded. kFailedPrecondition, naming the data set and what to do, when the
// samples are not those of the record; errors of the store are returned unchanged. OK and without
// effect for a data set that knows no checksum.
Status CheckDataRecord(const RoleContext& context, const Dataset& dataset);

}  // namespace lambdadnn
