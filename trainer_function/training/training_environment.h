// SPDX-License-Identifier: Apache-2.0
// What the training roles need of their process: factories of data set and model, memory and CPU
// use. Made from SliceEnvironment (server/slice_service.h) or by a test.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/base/status.h"
#include "common/base/store_counters.h"
#include "common/protocol/training_config.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/model/trainable_model.h"
#include "trainer_function/training/kept_training.h"
#include "trainer_function/transport/slice_peers.h"

namespace lambdadnn {

struct TrainingEnvironment {
  std::function<Result<std::unique_ptr<TrainableModel>>(const TrainingConfig&, const DatasetInfo&,
                                                        int threads)>
      make_model;
  std::function<Result<std::unique_ptr<Dataset>>(const DatasetConfig&)> open_dataset;
  // Not null where role worker runs.
  KeptTraining* kept = nullptr;
  // Largest resident set of this process so far, in bytes. Never null.
  std::function<int64_t()> max_rss_bytes;
  // CPU time of this process so far, all threads. Never null.
  std::function<double()> cpu_seconds;
  // How functions reach each other, for role profile.
  PeerAccess peers = {};
  // Requests of this process to the stores of data sets so far; null = not counted.
  std::function<StoreCounters()> data_requests = {};
};

}  // namespace lambdadnn
