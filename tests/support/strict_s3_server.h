// SPDX-License-Identifier: Apache-2.0
// StrictS3 on a port of 127.0.0.1, with a network between it and its clients that fails as real
// ones do. One task a connection; the destructor closes all.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "tests/support/strict_s3.h"

namespace lambdadnn {

// Probabilities per request.
struct StrictS3Faults {
  double refuse = 0;       // 503 SlowDown without effect
  double lose_reply = 0;   // the connection closes after the effect, before a byte of the answer
  double cut_body = 0;     // the connection closes in the middle of the answer's body
  double stale_close = 0;  // a kept-alive connection is closed after its answer
  double delay = 0;        // the answer waits, so that later ones overtake it
  double max_delay_seconds = 0.01;
};

class StrictS3Server {
 public:
  StrictS3Server(Runtime& runtime, const StrictS3Options& options);
  ~StrictS3Server();
  StrictS3Server(const StrictS3Server&) = delete;
  StrictS3Server& operator=(const StrictS3Server&) = delete;

  void SetFaults(const StrictS3Faults& faults);
  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  StrictS3& service() { return service_; }
  int64_t requests() const { return requests_; }
  int64_t connections() const { return connections_; }
  int64_t faults_injected() const { return injected_; }

 private:
  struct Network;  // Asio's types stay in the .cc

  void Accept();
  void Serve(int connection);
  bool Happens(double StrictS3Faults::* fault);
  Duration RandomDelay();

  Runtime& runtime_;
  StrictS3 service_;
  std::unique_ptr<Network> network_;
  int port_ = 0;
  std::mutex mutex_;
  StrictS3Faults faults_;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> connections_{0};
  std::atomic<int64_t> injected_{0};
  std::unique_ptr<Task> accepting_;
  std::vector<std::unique_ptr<Task>> tasks_;  // of connections; the accepting task's until it ends
};

}  // namespace lambdadnn
