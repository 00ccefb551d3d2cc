// SPDX-License-Identifier: Apache-2.0
// Where spans go, by the environment variables that OpenTelemetry defines for exporters: OTLP over
// HTTP in JSON.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/http/http_transport.h"
#include "common/tracing/span.h"

namespace lambdadnn {

struct OtlpSettings {
  std::string url;     // of the traces; without credentials
  HttpFields headers;  // may hold a secret: never logged
  double timeout_seconds = 10;
  std::string ca_file;                  // PEM; empty = the system's authorities
  std::vector<SpanAttribute> resource;  // what the spans are of: service.name and more
};

// The value of an environment variable; nothing or "" = it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

// What the environment gives on top of `resource`, the service's own attributes. Nothing without an
// endpoint, with OTEL_SDK_DISABLED=true and with OTEL_TRACES_EXPORTER=none. kInvalidArgument names
// the variable, never its value where that may be a secret.
Result<std::optional<OtlpSettings>> OtlpSettingsOf(const EnvironmentLookup& lookup,
                                                   std::vector<SpanAttribute> resource);

}  // namespace lambdadnn
