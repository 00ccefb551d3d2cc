// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/function_server.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "common/protocol/slice_codec.h"
#include "common/telemetry/log.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kSlicesPath = "/v1/slices";
constexpr int64_t kLongestWindowMs = 60'000;
constexpr std::string_view kHeartbeatLine = "{\"type\":\"heartbeat\"}\n";

// A platform's probe, which has no key. Other methods on a probe's path are none: without a key no
// byte of a body is read.
enum class Probe { kNone, kHealth, kReadiness };

// By Kubernetes' usual names, or by those of OpenFaaS.
Probe ProbeAt(const std::string& path) {
  if (path == "/healthz" || path == "/_/health") return Probe::kHealth;
  if (path == "/readyz" || path == "/_/ready") return Probe::kReadiness;
  return Probe::kNone;
}

bool IsProbe(const HttpServerRequest& request) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  return reads && !request.has_body && ProbeAt(request.path) != Probe::kNone;
}

// Time depends on neither the key nor where a wrong one differs.
bool HoldsKey(std::string_view authorization, std::string_view key) {
  constexpr std::string_view kScheme = "Bearer ";
  if (!authorization.starts_with(kScheme)) return false;
  authorization.remove_prefix(kScheme.size());
  return authorization.size() == key.size() &&
         CRYPTO_memcmp(authorization.data(), key.data(), key.size()) == 0;
}

HttpServerReply TextReply(int status, std::string body) {
  HttpServerReply reply;
  reply.status = status;
  reply.content_type = "text/plain; charset=utf-8";
  reply.body = std::move(body);
  return reply;
}

// It tells a caller with a newer protocol which one to use.
HttpServerReply RefusalReply(const Status& status) {
  HttpServerReply reply = ErrorReply(status);
  auto body = nlohmann::json::parse(reply.body, nullptr, false);
  if (!body.is_object()) return reply;
  body["protocol"] = kProtocolVersion;
  reply.body = DumpJson(body) + "\n";
  return reply;
}

HttpServerReply RunningReply(int status, const std::optional<std::string>& running) {
  nlohmann::json body;
  body["running"] = running ? nlohmann::json(*running) : nlohmann::json(nullptr);
  HttpServerReply reply;
  reply.status = status;
  reply.body = DumpJson(body) + "\n";
  return reply;
}

HttpServerReply WrongMethod(const HttpServerRequest& request, std::string_view allowed) {
  HttpServerReply reply = ErrorReply(InvalidArgumentError(
      request.path + " does not take " + request.method + "; use " + std::string(allowed)));
  reply.status = 405;
  return reply;
}

// The number in the query, from 0 to `most`; nothing where there is none.
Result<std::optional<int64_t>> QueryNumber(const HttpServerRequest& request,
                                           const std::string& name, int64_t most) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return std::optional<int64_t>();
  const std::optional<long long> number = ParseInteger(found->second);
  if (!number || *number < 0 || *number > most) {
    return InvalidArgumentError("query parameter '" + name + "' must be a number >= 0" +
                                (most == std::numeric_limits<int64_t>::max()
                                     ? std::string()
                                     : " and <= " + std::to_string(most)));
  }
  return std::optional<int64_t>(*number);
}

// The flag in the query; `fallback` where there is none.
Result<bool> QueryFlag(const HttpServerRequest& request, const std::string& name, bool fallback) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return fallback;
  if (found->second != "true" && found->second != "false") {
    return InvalidArgumentError("query parameter '" + name + "' must be 'true' or 'false'");
  }
  return found->second == "true";
}

}  // namespace

FunctionServer::FunctionServer(Runtime& runtime, SliceControl& slices, MetricsRegistry& metrics,
                               std::string job_key, NumericsFingerprint fingerprint)
    : runtime_(runtime),
      slices_(slices),
      metrics_(metrics),
      job_key_(std::move(job_key)),
      fingerprint_(std::move(fingerprint)),
      started_(runtime.clock.Now()) {
  LDNN_CHECK(!job_key_.empty(), "a function without a key would serve anybody");
}

std::optional<HttpServerReply> FunctionServer::Admit(const HttpServerRequest& head) {
  if (IsProbe(head) || HoldsKey(head.authorization, job_key_)) return std::nullopt;
  metrics_
      .GetCounter("lambdadnn_http_unauthenticated_requests_total",
                  "Requests refused for a missing or wrong job key.")
      .Add();
  return ErrorReply(
      UnauthenticatedError("the job key is missing or wrong; send Authorization: Bearer <key>"));
}

HttpServerReply FunctionServer::Handle(HttpServerRequest request) {
  HttpServerReply reply = Route(request);
  metrics_
      .GetCounter("lambdadnn_http_requests_total", "Requests answered, by HTTP status.",
                  {{"code", std::to_string(reply.status)}})
      .Add();
  return reply;
}

HttpServerReply FunctionServer::Route(const HttpServerRequest& request) {
  if (const Probe probe = ProbeAt(request.path); probe != Probe::kNone) {
    if (!IsProbe(request)) return WrongMethod(request, "GET or HEAD without a body");
    if (probe == Probe::kHealth) return TextReply(200, "ok\n");
    if (!ready_) return TextReply(503, "draining\n");
    HttpServerReply reply;
    reply.body = EncodeFingerprint(fingerprint_);
    return reply;
  }
  if (request.path == "/metrics") {
    return request.method == "GET" ? Metrics() : WrongMethod(request, "GET");
  }
  if (request.path == kSlicesPath) {
    if (request.method == "POST") return PostSlice(request);
    if (request.method == "GET") return RunningReply(200, slices_.Running());
    return WrongMethod(request, "GET or POST");
  }
  const std::string prefix = std::string(kSlicesPath) + "/";
  if (request.path.starts_with(prefix) && request.path.size() > prefix.size()) {
    if (request.method != "DELETE") return WrongMethod(request, "DELETE");
    return DeleteSlice(request, request.path.substr(prefix.size()));
  }
  return ErrorReply(NotFoundError("nothing is served at " + request.path +
                                  "; slices are at /v1/slices, metrics at /metrics"));
}

HttpServerReply FunctionServer::PostSlice(const HttpServerRequest& request) {
  const auto from = QueryNumber(request, "from", std::numeric_limits<int64_t>::max());
  if (!from.ok()) return ErrorReply(from.status());
  const auto window_ms = QueryNumber(request, "windowMs", kLongestWindowMs);
  if (!window_ms.ok()) return ErrorReply(window_ms.status());
  std::optional<Duration> window;
  if (window_ms->has_value()) window = std::chrono::milliseconds(**window_ms);
  const Result<bool> attach = QueryFlag(request, "attach", false);
  if (!attach.ok()) return ErrorReply(attach.status());
  const Result<SliceRequest> slice = DecodeSliceRequest(request.body);
  if (!slice.ok()) return RefusalReply(slice.status());
  if (*attach) {
    const Status known = slices_.Line(slice->invocation, 0, runtime_.clock.Now()).status();
    if (known.code() == StatusCode::kNotFound) return ErrorReply(known);
  }
  const Status started = slices_.Start(*slice);
  if (started.code() == StatusCode::kAlreadyExists) {
    return RunningReply(409, started.message());
  }
  if (!started.ok()) {
    LogWarning("server", "slice refused",
               {{"invocation", slice->invocation}, {"error", started.ToString()}});
    return RefusalReply(started);
  }
  return Stream(slice->invocation, from->value_or(0), window);
}

HttpServerReply FunctionServer::Stream(const std::string& invocation, int64_t from,
                                       std::optional<Duration> window) {
  HttpServerReply reply;
  reply.content_type = "application/x-ndjson";
  std::optional<Instant> until;
  if (window.has_value()) until = runtime_.clock.Now() + *window;
  reply.stream = [this, invocation, until, index = from, begun = false,
                  gather = Instant()]() mutable -> std::optional<std::string> {
    slices_.AwaitEnd(invocation, until.has_value() ? std::min(gather, *until) : gather);
    const Instant now = runtime_.clock.Now();
    if (begun && until.has_value() && now >= *until) return std::nullopt;
    begun = true;
    const Instant heartbeat = now + FromSeconds(kHeartbeatSeconds);
    const Instant deadline = until.has_value() ? std::min(heartbeat, *until) : heartbeat;
    Result<std::optional<std::string>> line = slices_.Line(invocation, index, deadline);
    // The end of the stream, or another slice has taken its place: either way nothing follows, and
    // the caller sees from the missing record that it must ask again.
    if (!line.ok()) return std::nullopt;
    if (!line->has_value()) return std::string(kHeartbeatLine);
    std::string lines = **std::move(line) + "\n";
    ++index;
    // The slice's first line is news: that it has begun. Others may wait for the window's end.
    if (index == 1) {
      if (until.has_value()) until = now;
      return lines;
    }
    for (;; ++index) {
      line = slices_.Line(invocation, index, Instant());
      if (!line.ok() || !line->has_value()) break;
      lines += **std::move(line) + "\n";
    }
    gather = runtime_.clock.Now() + FromSeconds(kGatherSeconds);
    return lines;
  };
  return reply;
}

HttpServerReply FunctionServer::DeleteSlice(const HttpServerRequest& request,
                                            const std::string& invocation) {
  const Result<bool> graceful = QueryFlag(request, "graceful", true);
  if (!graceful.ok()) return ErrorReply(graceful.status());
  const Status stopped = slices_.Stop(invocation, *graceful);
  if (!stopped.ok()) return ErrorReply(stopped);
  return RunningReply(202, slices_.Running());
}

std::optional<HttpServerReply> ProbeServer::Admit(const HttpServerRequest& head) {
  if (IsProbe(head)) return std::nullopt;
  return ErrorReply(PermissionDeniedError(
      "only the probes are answered in plain text; send requests over TLS to port " +
      std::to_string(tls_port_)));
}

HttpServerReply ProbeServer::Handle(HttpServerRequest request) {
  return server_.Handle(std::move(request));
}

HttpServerReply FunctionServer::Metrics() {
  metrics_.GetGauge("lambdadnn_process_resident_memory_bytes", "Resident set size of the function.")
      .Set(static_cast<double>(ResidentBytes()));
  metrics_
      .GetGauge("lambdadnn_process_cpu_seconds", "CPU time used by all threads of the function.")
      .Set(ToSeconds(ProcessCpuTime()));
  metrics_.GetGauge("lambdadnn_function_uptime_seconds", "Time since the function started.")
      .Set(ToSeconds(runtime_.clock.Now() - started_));
  metrics_.GetGauge("lambdadnn_slice_running", "1 while a slice runs, else 0.")
      .Set(slices_.Running() ? 1 : 0);
  HttpServerReply reply;
  reply.content_type = MetricsRegistry::kContentType;
  reply.body = metrics_.Text();
  return reply;
}

}  // namespace lambdadnn
