// SPDX-License-Identifier: Apache-2.0
// The function contract without a network: accepts, fences, runs, attaches to and stops slices. The
// HTTP server (function_server.h) and the simulator are thin layers over it.
//
// Thread-safe. One slice runs at a time; its lines are kept until another slice starts, so that a
// caller can attach late. Start's errors: kAlreadyExists = busy with another slice (the message is
// its invocation id), kFailedPrecondition = fenced (leader epoch, plan revision, incarnation or
// first iteration too low, or another job's), kInvalidArgument = the request makes no sense for
// this function.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/process_usage.h"
#include "common/base/runtime.h"
#include "common/base/status.h"
#include "common/objectstore/object_store.h"
#include "common/protocol/slice.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/model/trainable_model.h"
#include "trainer_function/transport/interrupt.h"
#include "trainer_function/transport/slice_peers.h"

namespace lambdadnn {

// Dependencies of a slice, injected by the program or the simulator. A null make_model means a
// function without LibTorch: it serves role server only.
struct SliceEnvironment {
  std::function<Result<std::unique_ptr<TrainableModel>>(const TrainingConfig&, const DatasetInfo&,
                                                        int threads)>
      make_model;
  std::function<Result<std::unique_ptr<Dataset>>(const DatasetConfig&)> open_dataset;
  // Called when a slice starts, before any store is opened, with its request's credentials; absent
  // = the environment's. May be null.
  std::function<void(const std::optional<StoreCredentials>&)> use_credentials;
  // Called with the interrupt of a slice when it starts, and with null once it has ended: what
  // waits in a data set's store ends with the slice. May be null.
  std::function<void(Interrupt*)> use_interrupt;
  // One attempt a call: the slice repeats calls itself, and stops doing so when it must end.
  std::function<Result<std::unique_ptr<ObjectStore>>(const StoreReference&)> open_store;
  // Instruction set level that the kernels of this process use; a plan pinned to another is
  // refused.
  std::string isa;
  // LibTorch's version and BLAS; a worker's slice of a plan pinned to another is refused. Empty = a
  // function without.
  std::string libtorch;
  // Called by the training and merging loops after each piece of CPU work (at most a batch or a
  // shard): sleeps where the CPU quota is kept by pacing (cpu_pacer.h). May be null.
  std::function<void()> pace;
  // What this process has used so far (CurrentProcessUsage of common/base/process_usage.h); null =
  // records say zero.
  std::function<ProcessUsage()> usage;
  // For how long CPU quotas have kept this process from running so far: by its control group
  // (common/base/throttled_time.h) and by pacing; null = records say zero.
  std::function<double()> throttled_seconds;
  // How training roles reach each other (slice_peers.h).
  PeerAccess peers = {};
  // Requests of this process to the stores of data sets so far; null = records have none.
  std::function<StoreCounters()> data_requests = {};
};

class SliceService {
 public:
  SliceService(Runtime& runtime, SliceEnvironment environment);
  ~SliceService();  // stops the running slice at once and joins it
  SliceService(const SliceService&) = delete;
  SliceService& operator=(const SliceService&) = delete;

  // Starts the slice, or finds the one with this invocation id (running or ended).
  Status Start(const SliceRequest& request);
  // Line number `index` (0, 1, …) of the invocation's stream, waiting for it until `deadline`.
  // nullopt: not yet, write a heartbeat and ask again. kNotFound: unknown invocation. kOutOfRange:
  // the stream ended before this line.
  Result<std::optional<std::string>> Line(const std::string& invocation, int64_t index,
                                          Instant deadline);
  // Until the slice has ended or another one is here, at most until `deadline`: for a reader whose
  // lines may come together.
  void AwaitEnd(const std::string& invocation, Instant deadline);
  // Graceful: finish at an agreed iteration with a checkpoint. Otherwise: as soon as possible.
  Status Stop(const std::string& invocation, bool graceful);
  // SIGTERM: refuses new slices and stops the running one gracefully.
  void Drain();
  // Invocation that is running now.
  std::optional<std::string> Running() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lambdadnn
