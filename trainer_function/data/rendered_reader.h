// SPDX-License-Identifier: Apache-2.0
// The demo digits without any file: every function draws the samples of its own partitions. They
// are those of the IDX files that `lambdadnn dataset render-digits` writes, to the byte.
#pragma once

#include "common/protocol/training_config.h"
#include "trainer_function/data/open_readers.h"

namespace lambdadnn {

// From config.rendered_digits, which must be set. kInvalidArgument naming the field for counts out
// of range, fewer than ten classes, or files named as well.
Result<SampleReaders> OpenRenderedDigits(const DatasetConfig& config);

}  // namespace lambdadnn
