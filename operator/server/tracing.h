// SPDX-License-Identifier: Apache-2.0
// Traces of jobs to a collector, as OpenTelemetry's environment variables say (OTEL_*).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/http/http_transport.h"
#include "common/telemetry/metrics.h"
#include "common/tracing/otlp_settings.h"
#include "common/tracing/span_exporter.h"

namespace lambdadnn {

class Tracing {
 public:
  // Null where the environment names no collector. `identity`: of this process among the replicas.
  // All outlive the result. kInvalidArgument names the variable.
  static Result<std::unique_ptr<Tracing>> Open(Runtime& runtime, const EnvironmentLookup& lookup,
                                               const std::string& identity,
                                               MetricsRegistry& metrics);

  // Neither blocks nor fails; thread-safe.
  void Export(std::vector<Span> spans) { exporter_->Export(std::move(spans)); }

 private:
  Tracing() = default;
  std::unique_ptr<HttpTransport> transport_;
  std::unique_ptr<SpanExporter> exporter_;
};

}  // namespace lambdadnn
