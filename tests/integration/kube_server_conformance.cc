// SPDX-License-Identifier: Apache-2.0
// The suite of every KubeClient on a real kube-apiserver, whose kubeconfig the variable
// LAMBDADNN_TEST_KUBECONFIG names (kube_conformance_test.py starts one).
#include "common/base/files.h"
#include "operator/kube/http_kube_client.h"
#include "operator/kube/object_metadata.h"
#include "tests/support/system_runtime.h"
#include "tests/unit/operator/kube/kube_client_conformance.h"

namespace lambdadnn {
namespace {

constexpr Duration kPoll = std::chrono::milliseconds(50);
constexpr int kPolls = 400;

KubeConnection TestServer() {
  const auto file = GetEnvironment("LAMBDADNN_TEST_KUBECONFIG");
  LDNN_CHECK(file.has_value(), "LAMBDADNN_TEST_KUBECONFIG names no kubeconfig");
  return LoadKubeconfig({*file}, "").value();
}

struct ServerFixture final : KubeFixture {
  ServerFixture() : http(TestServer(), runtime) {
    const ResourceType crds{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                            "CustomResourceDefinition"};
    (void)http.Create(crds, ConformanceCrd());  // there already but for the first test
    for (int i = 0; i < kPolls && !Clean(); ++i) runtime.clock.SleepFor(kPoll);
  }
  KubeClient& client() override { return http; }

  // Whether the kind is served and nothing of an earlier test is left.
  bool Clean() {
    const auto list = http.List(WidgetType(), "", "", 0, "");
    if (!list.ok()) return false;
    for (const Json& widget : list->items) {
      (void)http.Patch(WidgetType(), NameOf(widget), {{"metadata", {{"finalizers", nullptr}}}},
                       Subresource::kNone);
      (void)http.Delete(WidgetType(), NameOf(widget), "");
    }
    return list->items.empty();
  }

  SystemRuntime runtime;
  HttpKubeClient http;
};

INSTANTIATE_TEST_SUITE_P(KubeApiServer, KubeClientConformance,
                         ::testing::Values([]() -> std::unique_ptr<KubeFixture> {
                           return std::make_unique<ServerFixture>();
                         }));

}  // namespace
}  // namespace lambdadnn
