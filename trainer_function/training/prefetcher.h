// SPDX-License-Identifier: Apache-2.0
// Prepares the batches of the next iterations on a task of its own while the training computes. The
// order of samples is known in advance, so that the batches are the same as without it.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "common/base/runtime.h"
#include "common/base/status.h"
#include "common/plan/geometry.h"
#include "common/plan/sample_memory.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/transport/interrupt.h"

namespace lambdadnn {

// Next belongs to one task; batches are prepared on another, which the destructor ends: it waits
// for what is being read then, and nothing further is begun.
class Prefetcher {
 public:
  // The batch of an iteration. `check` fails once nobody wants it any more.
  using Prepare = std::function<Result<Batch>(int64_t iteration, const FetchCheck& check)>;

  // At most kPreparedBatches of these iterations wait, the one that is being prepared included.
  Prefetcher(Runtime& runtime, Interrupt& interrupt, Range iterations, Prepare prepare);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The batch of the first iteration, then of each further one. The error of preparing it, which
  // ends all; that of the interrupt.
  Result<Batch> Next();
  // The most that have waited so far.
  int most_waiting();

 private:
  void Run();
  Status Check();

  Interrupt& interrupt_;
  const Range iterations_;
  const Prepare prepare_;
  const std::unique_ptr<Monitor> monitor_;  // guards what follows
  std::deque<Batch> waiting_;
  Status failure_;
  int most_waiting_ = 0;
  bool closed_ = false;
  std::unique_ptr<Task> task_;
};

}  // namespace lambdadnn
