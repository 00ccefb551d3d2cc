// SPDX-License-Identifier: Apache-2.0
// Any object as the Lease, twice (cut at the first line break): whatever others wrote into it, an
// election neither fails nor leads unless its own write was taken.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/base/runtime.h"
#include "operator/kube/leader_election.h"
#include "tests/support/refusing_kube_client.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

// Shows the lease that it is told to; takes no write.
class StubbornServer final : public RefusingKubeClient {
 public:
  StubbornServer(Runtime& runtime, std::vector<Json> leases)
      : RefusingKubeClient(AbortedError("somebody else was faster")),
        monitor_(runtime.executor.NewMonitor()),
        leases_(std::move(leases)) {}

  void AwaitReads(size_t count) {
    const MonitorLock lock(*monitor_);
    while (reads_ < count) monitor_->Wait();
  }
  Result<Json> Get(const ResourceType&, const ObjectName&) override {
    const MonitorLock lock(*monitor_);
    const Json& lease = leases_[std::min(reads_, leases_.size() - 1)];
    ++reads_;
    monitor_->NotifyAll();
    return lease;
  }

 private:
  std::unique_ptr<Monitor> monitor_;
  std::vector<Json> leases_;
  size_t reads_ = 0;  // with the monitor
};

}  // namespace
}  // namespace lambdadnn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<Json> leases;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (auto lease = ParseJson(text.substr(0, end)); lease.ok()) leases.push_back(*lease);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (leases.empty()) return 0;
  SystemRuntime runtime;
  StubbornServer server(runtime, leases);
  LeaderElectionOptions options;
  options.lease = {"kube-system", "lambdadnn"};
  options.identity = "we";
  options.retry_seconds = 1e-5;
  options.renew_seconds = 1e-4;
  options.lease_seconds = 1e-3;
  LeaderElection election(server, runtime, options,
                          {.on_acquired = [](int64_t) { LDNN_CHECK(false, "it never led"); },
                           .on_lost = nullptr,
                           .on_new_leader = nullptr});
  election.Start();
  server.AwaitReads(leases.size() + 1);
  election.Stop();
  return 0;
}
