// SPDX-License-Identifier: Apache-2.0
// What a worker keeps from one slice to the next in its process: its share of the data and the
// model, which it would otherwise read and make anew for each slice. Of a job neither its data set
// nor its model can change. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/protocol/slice.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

class KeptTraining {
 public:
  // What decides which samples are loaded, and how the model computes.
  struct Key {
    std::string job_uid;
    int functions = 0;
    int rank = 0;
    int virtual_partitions = 0;
    int threads = 0;
    int local_batch_size = 0;
    int sample_memory_mib = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  static Key KeyOf(const SliceRequest& request);

  struct Content {
    std::unique_ptr<Dataset> dataset;  // with its samples loaded
    std::unique_ptr<TrainableModel> model;
  };

  // Nothing unless it was given under this key; in any case nothing is kept any more, so that a
  // slice that fails leaves nothing to the next one.
  std::optional<Content> Take(const Key& key);
  void Give(const Key& key, Content content);

 private:
  std::mutex mutex_;  // guards both
  Key key_;
  std::optional<Content> content_;
};

}  // namespace lambdadnn
