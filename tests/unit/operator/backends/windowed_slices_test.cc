// SPDX-License-Identifier: Apache-2.0
// Slices behind a gateway that passes answers on whole: their lines come by one request after
// another, and what the gateway refuses by itself is no refusal of the function.
#include <gtest/gtest.h>

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/http/http_server.h"
#include "common/protocol/slice_codec.h"
#include "operator/backends/beast_slice_client.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

constexpr const char* kBeat = "{\"type\":\"heartbeat\"}\n";

std::string DoneWith(int64_t iteration) {
  ProgressLine line;
  line.iteration = iteration;
  return EncodeProgress(line) + "\n";
}

// Whole answers, one for each request; then the gateway is gone.
class ScriptedGateway final : public HttpServerHandler {
 public:
  std::optional<HttpServerReply> Admit(const HttpServerRequest&) override { return std::nullopt; }
  HttpServerReply Handle(HttpServerRequest request) override {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    HttpServerReply reply;
    reply.status = 502;
    if (answers_.empty()) return reply;
    reply.status = answers_.front().first;
    reply.body = answers_.front().second;
    answers_.pop_front();
    return reply;
  }
  void Then(int status, std::string body) {
    const std::lock_guard lock(mutex_);
    answers_.emplace_back(status, std::move(body));
  }
  std::vector<HttpServerRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<int, std::string>> answers_;
  std::vector<HttpServerRequest> requests_;
};

class WindowedSlices : public testing::Test {
 protected:
  WindowedSlices() {
    request_.invocation = "job-1.r1.i0.worker-0.f0.a1";
    request_.job = {"job-1", "default", "demo"};
    request_.plan.memory_mib = 128;
    request_.plan.server_memory_mib = 128;
    request_.plan.local_batch_size = 1;
    request_.plan.global_batch_size = 1;
    request_.plan.iterations = 1;
    request_.plan.iterations_per_epoch = 1;
    request_.plan.parameters = 1;
    server_ = HttpServer::ListenTcp(runtime_, gateway_, "127.0.0.1", 0, HttpServerLimits{}).value();
    BeastSliceClient::Options options;
    options.window_seconds = 0.75;
    client_ = std::make_unique<BeastSliceClient>(runtime_, options);
  }

  std::string Record() const {
    SliceRecord record;
    record.invocation = request_.invocation;
    record.outcome = SliceOutcome::kStopped;
    record.next_iteration = 3;
    return EncodeRecord(record) + "\n";
  }
  void Start() {
    const Endpoint function = {
        .host = "127.0.0.1", .port = server_->port(), .path = "/function/demo-worker-0"};
    client_->Start("instance-1", function, request_, {"key"});
  }
  SliceView Await(SlicePhase phase) {
    SliceView view;
    for (int i = 0; i < 500 && view.phase != phase; ++i) {
      const std::vector<SliceView> views = client_->Poll("job-1");
      if (views.size() == 1) view = views[0];
      for (const ProgressLine& line : view.new_lines) iterations_.push_back(line.iteration);
      runtime_.clock.SleepFor(FromSeconds(0.01));
    }
    EXPECT_EQ(view.phase, phase) << view.error.ToString();
    return view;
  }

  SystemRuntime runtime_;
  ScriptedGateway gateway_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<BeastSliceClient> client_;
  SliceRequest request_;
  std::vector<int64_t> iterations_;
};

TEST_F(WindowedSlices, TheNextRequestGoesOnBehindTheLastLine) {
  gateway_.Then(200, DoneWith(1) + DoneWith(2));
  gateway_.Then(200, kBeat);
  gateway_.Then(200, DoneWith(3) + Record());
  Start();
  EXPECT_EQ(Await(SlicePhase::kEnded).record->next_iteration, 3);
  EXPECT_EQ(iterations_, (std::vector<int64_t>{1, 2, 3}));
  const std::vector<HttpServerRequest> requests = gateway_.requests();
  ASSERT_EQ(requests.size(), 3u);
  const auto query = [&](size_t at, const char* name) {
    const auto found = requests[at].query.find(name);
    return found == requests[at].query.end() ? "" : found->second;
  };
  EXPECT_EQ(requests[0].path, "/function/demo-worker-0/v1/slices");
  EXPECT_EQ(query(0, "attach"), "");
  for (const size_t at : {1, 2}) {
    EXPECT_EQ(query(at, "from"), "2");
    EXPECT_EQ(query(at, "attach"), "true");
    EXPECT_EQ(query(at, "windowMs"), "750");
    EXPECT_EQ(DecodeSliceRequest(requests[at].body)->invocation, request_.invocation);
  }
}

TEST_F(WindowedSlices, WhatARequestTakesBeyondItsWindowIsTheHops) {
  for (const double window_seconds : {0.75, 1e-9}) {
    gateway_.Then(200, DoneWith(1));
    gateway_.Then(200, kBeat);
    gateway_.Then(200, Record());
    BeastSliceClient::Options options;
    options.window_seconds = window_seconds;
    client_ = std::make_unique<BeastSliceClient>(runtime_, options);
    Start();
    const double hop = Await(SlicePhase::kEnded).hop_seconds;
    EXPECT_EQ(hop > 0, window_seconds < 0.75) << "an answer that comes early tells nothing";
    EXPECT_LT(hop, 5);
  }
}

TEST_F(WindowedSlices, ALineThatIsCutComesAgain) {
  const std::string next = DoneWith(2);
  gateway_.Then(200, DoneWith(1) + next.substr(0, next.size() / 2));
  gateway_.Then(200, next + Record());
  Start();
  Await(SlicePhase::kEnded);
  EXPECT_EQ(iterations_, (std::vector<int64_t>{1, 2}));
}

TEST_F(WindowedSlices, AnAnswerWithoutALineIsLost) {
  gateway_.Then(200, "");
  Start();
  EXPECT_EQ(Await(SlicePhase::kLost).error.code(), StatusCode::kUnavailable);
  EXPECT_EQ(gateway_.requests().size(), 1u);
}

TEST_F(WindowedSlices, WhatTheGatewaySaysIsNoRefusal) {
  for (const auto& [status, body] : std::vector<std::pair<int, std::string>>{
           {500, "Can't reach service for: demo-worker-0."},
           {503, "No endpoints available for: demo-worker-0."},
           {404, "error finding function demo-worker-0.openfaas-fn"},
           {429, "Concurrent request limit exceeded. Max concurrent requests: 1"},
           {502, ""}}) {
    gateway_.Then(status, body);
    Start();
    const SliceView view = Await(SlicePhase::kLost);
    EXPECT_EQ(view.error.code(), StatusCode::kUnavailable) << status;
    EXPECT_NE(view.error.message().find("HTTP status " + std::to_string(status)),
              std::string::npos);
    EXPECT_NE(view.error.message().find(body), std::string::npos) << view.error.message();
    client_->Forget(request_.invocation);
  }
}

TEST_F(WindowedSlices, WhatTheFunctionSaysIs) {
  gateway_.Then(412, R"({"error": {"message": "fenced"}, "protocol": 9})");
  Start();
  EXPECT_EQ(Await(SlicePhase::kRefused).error.message(), "fenced");
  client_->Forget(request_.invocation);
  gateway_.Then(409, R"({"running": "another"})");
  Start();
  EXPECT_EQ(Await(SlicePhase::kRefused).busy_with, "another");
}

}  // namespace
}  // namespace lambdadnn
