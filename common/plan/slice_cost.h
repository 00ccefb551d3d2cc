// SPDX-License-Identifier: Apache-2.0
// Requests that stores charge for and functions make beside their exchange (collective_cost.h),
// their data set and the decisions that evaluations make: to begin and to end slices, for
// checkpoints, and for what a run leaves. In all; exact where nothing is lost and nobody asks in
// vain.
//   slice begins    each role reads the manifest and looks at its K parts; each worker reads all
//                   parts, each root those of its shards; each worker the record of its data
//   checkpoint      K parts are written, their headers read and their sizes looked at, and the
//                   manifest written; checkpoints are listed, and objects of each that is deleted
//   slice ends      roots beside the one that completes the last checkpoint read its manifest
//   run             records of the data set; the model and, where it has one, its TorchScript
#pragma once

#include "common/plan/bill.h"
#include "common/plan/plan.h"

namespace lambdadnn {

struct RunShape {
  double slices = 1;
  // Beside the first, which holds the initial weights, and each slice's last.
  double checkpoints = 0;
  int kept_checkpoints = 1;
  bool keeps_best = false;
  int models = 2;  // that are left: weights, and TorchScript
};

Bill SliceRequests(const AggregationPlan& plan, const RunShape& run);

}  // namespace lambdadnn
