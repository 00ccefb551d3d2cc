// SPDX-License-Identifier: Apache-2.0
// SliceClient over HTTP: one task of the executor reads all streams. A stream without a byte for
// kSilenceSeconds is closed as lost (functions send a heartbeat every two seconds), and only a
// record whose length and checksum are right ends a slice. Starting a lost slice on the same
// instance again continues behind the last line that came; nothing is seen twice. A function that
// shows another certificate than its job's is sent nothing and counts as lost.
#pragma once

#include <functional>
#include <memory>

#include "common/base/endpoint.h"
#include "common/base/runtime.h"
#include "common/protocol/slice_codec.h"
#include "operator/backends/slice_client.h"
#include "operator/backends/stream_budget.h"

namespace lambdadnn {

class BeastSliceClient final : public SliceClient {
 public:
  struct Options {
    double connect_seconds = 5;
    double silence_seconds = 10;  // five heartbeats
    size_t max_line_bytes = kMaxSliceLineBytes;
    StreamRates rates;
    // That a slice keeps until they are polled; of more the older half is dropped.
    size_t max_unread_lines = 8192;
    // Behind what buffers answers: a slice's lines are asked for by one request after another, each
    // answered once it has taken this long. Whatever a proxy refuses by itself is no refusal of the
    // function then. 0 = one answer for a whole slice.
    double window_seconds = 0;
  };

  explicit BeastSliceClient(Runtime& runtime);
  BeastSliceClient(Runtime& runtime, const Options& options);
  // Closes all streams; the slices run on.
  ~BeastSliceClient() override;
  BeastSliceClient(const BeastSliceClient&) = delete;
  BeastSliceClient& operator=(const BeastSliceClient&) = delete;

  void Start(const std::string& instance_uid, const Endpoint& endpoint, const SliceRequest& request,
             const FunctionAccess& access) override;
  void Stop(const std::string& invocation, bool graceful) override;
  void Forget(const std::string& invocation) override;
  std::vector<SliceView> Poll(const std::string& job_uid) override;
  void AskFingerprint(const JobIdentity& job, const std::string& instance_uid,
                      const Endpoint& endpoint, const FunctionAccess& access) override;
  std::vector<FingerprintAnswer> TakeFingerprints(const std::string& job_uid) override;

  // Called with the job whose slice changed its phase or whose function answered with its
  // fingerprint, so that jobs need not be polled often. Runs on the task that reads the streams:
  // must neither block nor call this client. nullptr = no listener; once SetListener(nullptr)
  // returns, none is called any more.
  using Listener = std::function<void(const JobIdentity& job)>;
  void SetListener(Listener listener);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lambdadnn
