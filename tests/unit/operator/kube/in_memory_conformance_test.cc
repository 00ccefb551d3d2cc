// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/in_memory_api_server.h"
#include "tests/support/system_runtime.h"
#include "tests/unit/operator/kube/kube_client_conformance.h"

namespace lambdadnn {
namespace {

struct InMemoryFixture final : KubeFixture {
  explicit InMemoryFixture(Duration garbage_collection_delay)
      : server(runtime, {.garbage_collection_delay = garbage_collection_delay}) {
    server.Define(ReadResourceDefinition(ConformanceCrd()).value());
  }
  KubeClient& client() override { return server; }

  SystemRuntime runtime;
  InMemoryApiServer server;
};

INSTANTIATE_TEST_SUITE_P(InMemory, KubeClientConformance,
                         ::testing::Values([]() -> std::unique_ptr<KubeFixture> {
                           return std::make_unique<InMemoryFixture>(Duration{0});
                         }));
INSTANTIATE_TEST_SUITE_P(InMemoryWithSlowCollector, KubeClientConformance,
                         ::testing::Values([]() -> std::unique_ptr<KubeFixture> {
                           return std::make_unique<InMemoryFixture>(std::chrono::milliseconds(30));
                         }));

}  // namespace
}  // namespace lambdadnn
