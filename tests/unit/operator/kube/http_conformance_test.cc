// SPDX-License-Identifier: Apache-2.0
// The HTTP client against the HTTP facade of the in-memory API server.
#include "operator/kube/http_kube_client.h"
#include "operator/kube/in_memory_api_server.h"
#include "tests/support/kube_http_facade.h"
#include "tests/support/system_runtime.h"
#include "tests/unit/operator/kube/kube_client_conformance.h"

namespace lambdadnn {
namespace {

struct HttpFixture final : KubeFixture {
  explicit HttpFixture(size_t watch_piece)
      : server(runtime),
        http({.server = "https://api.test:6443"}, runtime, {},
             [this,
              watch_piece](const HttpTransportOptions&) -> Result<std::unique_ptr<HttpTransport>> {
               return std::unique_ptr<HttpTransport>(std::make_unique<KubeHttpFacade>(
                   server, std::vector<ResourceType>{WidgetType()}, watch_piece));
             }) {
    server.Define(ReadResourceDefinition(ConformanceCrd()).value());
  }
  KubeClient& client() override { return http; }

  SystemRuntime runtime;
  InMemoryApiServer server;
  HttpKubeClient http;
};

INSTANTIATE_TEST_SUITE_P(HttpInLines, KubeClientConformance,
                         ::testing::Values([]() -> std::unique_ptr<KubeFixture> {
                           return std::make_unique<HttpFixture>(size_t{1} << 20);
                         }));
INSTANTIATE_TEST_SUITE_P(HttpInPieces, KubeClientConformance,
                         ::testing::Values([]() -> std::unique_ptr<KubeFixture> {
                           return std::make_unique<HttpFixture>(7);
                         }));

}  // namespace
}  // namespace lambdadnn
