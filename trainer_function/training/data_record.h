// SPDX-License-Identifier: Apache-2.0
// What a worker has trained on, remembered in the store: its first slice of a plan revision notes
// the checksum of its samples under the job's records, and every later one compares. So data that
// changes between slices, after a loss or before a run is resumed ends the job before a gradient of
// the other data is computed, instead of changing the model's bits unseen.
#pragma once

#include <string>

#include "common/base/status.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// "<prefix>/records/data.r<revision>.worker-<rank>": 16 hexadecimal digits of the checksum, then 16
// of the XXH3 of these (a note that does not match itself is none, and is written anew). Another
// revision may give a rank other samples, so that it has notes of its own.
std::string DataRecordKey(const RoleContext& context);

// After the data set is loaded. kFailedPrecondition, naming the data set and what to do, when the
// samples are not those of the note; failures of the store as they are. OK and without effect for a
// data set that knows no checksum.
Status CheckDataRecord(const RoleContext& context, const Dataset& dataset);

}  // namespace lambdadnn
