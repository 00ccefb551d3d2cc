// SPDX-License-Identifier: Apache-2.0
// The HTTP face of a function (docs/formats.md, "Function HTTP API"): routes, authentication and
// the line stream of slices, on top of SliceControl. Knows no sockets: HttpServer serves it, tests
// and fuzzers call it directly.
//
// A function with a certificate serves all this over TLS, and beside it ProbeServer in plain text,
// for the probes of its platform.
//
// Everything but the probes needs "Authorization: Bearer <job key>", compared in constant time
// before a byte of the body is read.
#pragma once

#include <optional>
#include <string>

#include "common/base/runtime.h"
#include "common/http/http_server.h"
#include "common/protocol/numerics_fingerprint.h"
#include "common/telemetry/metrics.h"
#include "trainer_function/server/slice_control.h"

namespace lambdadnn {

// Interval of heartbeats on a stream without progress.
inline constexpr double kHeartbeatSeconds = 2;
// Lines of less time than this go out together, but for the first: there is one for each iteration,
// and to send one costs as much as a small exchange.
inline constexpr double kGatherSeconds = 0.1;

class FunctionServer final : public HttpServerHandler {
 public:
  // All references outlive the server and its streams. `job_key` is not empty. /readyz reports
  // `fingerprint`: what is answered at /readyz.
  FunctionServer(Runtime& runtime, SliceControl& slices, MetricsRegistry& metrics,
                 std::string job_key, NumericsFingerprint fingerprint = {});

  std::optional<HttpServerReply> Admit(const HttpServerRequest& head) override;
  HttpServerReply Handle(HttpServerRequest request) override;

  // From now on /readyz answers 503, so that no new work is sent.
  void SetNotReady() { ready_ = false; }

 private:
  HttpServerReply Route(const HttpServerRequest& request);
  HttpServerReply PostSlice(const HttpServerRequest& request);
  HttpServerReply DeleteSlice(const HttpServerRequest& request, const std::string& invocation);
  // `window` = ends after this long, with a line of some kind, although the slice goes on; at once
  // behind the slice's first line.
  HttpServerReply Stream(const std::string& invocation, int64_t from,
                         std::optional<Duration> window);
  HttpServerReply Metrics();

  Runtime& runtime_;
  SliceControl& slices_;
  MetricsRegistry& metrics_;
  const std::string job_key_;
  const NumericsFingerprint fingerprint_;
  const Instant started_;
  std::atomic<bool> ready_{true};
};

// The probes of a FunctionServer alone; everything else is refused before a byte of its body is
// read, since what is sent in plain text may hold keys.
class ProbeServer final : public HttpServerHandler {
 public:
  // `server` outlives this; the refusal names its port, that of TLS.
  ProbeServer(FunctionServer& server, int tls_port) : server_(server), tls_port_(tls_port) {}

  std::optional<HttpServerReply> Admit(const HttpServerRequest& head) override;
  HttpServerReply Handle(HttpServerRequest request) override;

 private:
  FunctionServer& server_;
  const int tls_port_;
};

}  // namespace lambdadnn
