// SPDX-License-Identifier: Apache-2.0
// Starts, follows and stops slices on function instances over HTTP (docs/formats.md, "Slices").
// Calls return at once; streams are read in the background and their newest state is polled, so
// that the controller stays level-triggered and no slow function delays another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/endpoint.h"
#include "common/base/status.h"
#include "common/protocol/numerics_fingerprint.h"
#include "common/protocol/slice.h"

namespace lambdadnn {

enum class SlicePhase {
  kStarting,  // request sent, nothing read yet
  kRunning,   // at least one line read
  kEnded,     // `record` is there
  kLost,      // the connection ended without a record; the slice may still run: attach again
  kRefused,   // the function refused (busy with another slice, fenced, bad request): see error
};

// What is known of one slice now.
struct SliceView {
  std::string invocation;
  std::string instance_uid;
  Role role;
  SlicePhase phase = SlicePhase::kStarting;
  std::vector<ProgressLine> new_lines;  // since the last Poll
  std::optional<ProgressLine> last;     // newest with an iteration
  Instant last_heard{};
  std::shared_ptr<const SliceRecord> record;  // null until it has come
  Status error;
  // kRefused because of another slice: its invocation id.
  std::string busy_with;
  // What lies in front of the function adds to a request, on average; 0 = not known, or nothing.
  double hop_seconds = 0;
};

// The numerics fingerprint of one function, or why it could not be asked.
struct FingerprintAnswer {
  std::string instance_uid;
  NumericsFingerprint fingerprint;
  // kUnauthenticated: it shows another certificate than FunctionAccess says.
  Status error = {};
};

// How the operator and the functions of a job know each other.
struct FunctionAccess {
  std::string job_key;  // what functions want to see
  // CertificateDigest of what a function with an endpoint https must show before it is sent
  // anything.
  std::string certificate_digest = "";
};

// Thread-safe.
class SliceClient {
 public:
  virtual ~SliceClient() = default;
  // POSTs the request to `address` (or attaches, if the function already runs this invocation).
  // A second call with the same invocation while its stream is alive does nothing.
  virtual void Start(const std::string& instance_uid, const Endpoint& endpoint,
                     const SliceRequest& request, const FunctionAccess& access) = 0;
  // Asks the function to end the slice: gracefully (finish the iteration, checkpoint) or at once.
  virtual void Stop(const std::string& invocation, bool graceful) = 0;
  // Drops all memory of the slice and closes its stream; the slice itself runs on.
  virtual void Forget(const std::string& invocation) = 0;
  // All slices of the job that were started here and not forgotten.
  virtual std::vector<SliceView> Poll(const std::string& job_uid) = 0;
  // Asks the function for its fingerprint. A second call during a request does nothing; after an
  // error, or without an answer within a few seconds, call it again.
  virtual void AskFingerprint(const JobIdentity& job, const std::string& instance_uid,
                              const Endpoint& endpoint, const FunctionAccess& access) = 0;
  // The answers and errors that came since the last call. Those that are never taken are dropped
  // after a while.
  virtual std::vector<FingerprintAnswer> TakeFingerprints(const std::string& job_uid) = 0;
};

}  // namespace lambdadnn
