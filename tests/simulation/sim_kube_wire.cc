// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_kube_wire.h"

#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/leader_election.h"
#include "tests/support/kube_http_facade.h"

namespace lambdadnn::simulation {
namespace {

constexpr Duration kWatchPoll = std::chrono::seconds(1);
constexpr size_t kWatchPiece = 1000;

// What comes back when a request or its answer is lost differs from network to network.
class Wire final : public HttpTransport {
 public:
  Wire(SimKubeClient& server, Runtime& runtime, const SimScheduler& scheduler)
      : runtime_(runtime),
        scheduler_(scheduler),
        facade_(server, {ServerlessTrainingJobType(), EventType(), SecretType(), LeaseType()},
                kWatchPiece, kWatchPoll) {}

  Result<HttpResponse> Send(const HttpRequest& request) override {
    Result<HttpResponse> response = facade_.Send(request);
    if (scheduler_.tracing()) {
      scheduler_.Trace("HTTP " + request.method + " " + request.url + " -> " +
                       (response.ok() ? std::to_string(response->status) : "no answer"));
    }
    if (!response.ok() || response->status != 503) return response;
    const uint64_t way = runtime_.random.Below(3);
    if (way == 0) return UnavailableError("sim: the connection ended");
    if (way == 1) response->fields.emplace_back("Retry-After", "1");
    return response;
  }

 private:
  Runtime& runtime_;
  const SimScheduler& scheduler_;
  KubeHttpFacade facade_;
};

}  // namespace

SimKubeWire::SimKubeWire(SimKubeClient& server, Runtime& runtime, const SimScheduler& scheduler,
                         const HttpKubeClientOptions& options)
    : client_({.server = "https://api.sim:6443"}, runtime, options,
              [&server, &runtime, &scheduler](const HttpTransportOptions&) {
                return Result<std::unique_ptr<HttpTransport>>(
                    std::make_unique<Wire>(server, runtime, scheduler));
              }) {}

}  // namespace lambdadnn::simulation
