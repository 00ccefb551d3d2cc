// SPDX-License-Identifier: Apache-2.0
#include "operator/server/tracing.h"

#include <optional>
#include <utility>

#include "common/telemetry/log.h"

namespace lambdadnn {
namespace {

constexpr const char* kServiceName = "lambdadnn-operator";

}  // namespace

Result<std::unique_ptr<Tracing>> Tracing::Open(Runtime& runtime, const EnvironmentLookup& lookup,
                                               const std::string& identity,
                                               MetricsRegistry& metrics) {
  LDNN_ASSIGN_OR_RETURN(std::optional<OtlpSettings> settings,
                        OtlpSettingsOf(lookup, {{"service.name", kServiceName},
                                                {"service.version", LAMBDADNN_VERSION},
                                                {"service.instance.id", identity},
                                                {"telemetry.sdk.name", "lambdadnn"},
                                                {"telemetry.sdk.language", "cpp"},
                                                {"telemetry.sdk.version", LAMBDADNN_VERSION}}));
  if (!settings.has_value()) return std::unique_ptr<Tracing>();
  std::unique_ptr<Tracing> tracing(new Tracing());
  auto transport = NewHttpTransport(
      {.inactivity_seconds = settings->timeout_seconds, .ca_file = settings->ca_file});
  if (!transport.ok()) return transport.status().WithContext("OTEL_EXPORTER_OTLP_CERTIFICATE");
  tracing->transport_ = *std::move(transport);
  LogInfo("tracing", "jobs are traced", {{"url", settings->url}});
  tracing->exporter_ =
      std::make_unique<SpanExporter>(runtime, *tracing->transport_, *std::move(settings),
                                     SpanScope{kServiceName, LAMBDADNN_VERSION}, &metrics);
  return tracing;
}

}  // namespace lambdadnn
