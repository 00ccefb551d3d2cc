// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/function_server.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/protocol/slice_codec.h"
#include "tests/support/fake_slice_control.h"
#include "tests/support/raw_http.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

constexpr const char* kKey = "0123456789abcdef";
constexpr const char* kHeartbeat = "{\"type\":\"heartbeat\"}\n";

class FunctionServerTest : public testing::Test {
 protected:
  RawReply Ask(const std::string& method_and_target, const std::string& key = kKey,
               const std::string& body = "") {
    std::string request = method_and_target + " HTTP/1.1\r\n";
    if (!key.empty()) request += "Authorization: Bearer " + key + "\r\n";
    request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    return ParseReply(ServeBytes(server_, HttpServerLimits{}, request));
  }
  RawReply Post(const std::string& invocation, const std::string& query = "") {
    return Ask("POST /v1/slices" + query, kKey,
               EncodeSliceRequest(MinimalSliceRequest(invocation)));
  }

  SystemRuntime runtime_;
  FakeSliceControl slices_;
  MetricsRegistry metrics_;
  FunctionServer server_{runtime_, slices_, metrics_, kKey, {"avx2", "1.0, built in"}};
};

TEST_F(FunctionServerTest, ProbesNeedNoKey) {
  EXPECT_EQ(Ask("GET /healthz", "").status, 200);
  EXPECT_EQ(Ask("GET /readyz", "").status, 200);
  EXPECT_EQ(Ask("HEAD /readyz", "").status, 200);
  EXPECT_EQ(Ask("HEAD /readyz", "").body, "");
  EXPECT_EQ(Ask("POST /healthz").status, 405);
}

TEST_F(FunctionServerTest, ProbesHaveTheNamesOfOpenFaasToo) {
  EXPECT_EQ(Ask("GET /_/health", "").body, "ok\n");
  EXPECT_EQ(Ask("GET /_/ready", "").body, Ask("GET /readyz", "").body);
  EXPECT_EQ(Ask("POST /_/ready").status, 405);
  server_.SetNotReady();
  EXPECT_EQ(Ask("GET /_/health", "").status, 200);
  EXPECT_EQ(Ask("GET /_/ready", "").status, 503);
}

TEST_F(FunctionServerTest, SendsTheFirstLineAtOnceAndThenThoseThatThereAreTogether) {
  slices_.lines = {"0", "1", "2"};
  slices_.heartbeats = 1;
  HttpServerRequest request;
  request.method = "POST";
  request.path = "/v1/slices";
  request.body = EncodeSliceRequest(MinimalSliceRequest("a"));
  HttpServerReply reply = server_.Handle(std::move(request));
  EXPECT_EQ(reply.stream(), "0\n");
  EXPECT_EQ(reply.stream(), "1\n2\n");
  EXPECT_EQ(reply.stream(), kHeartbeat);
  EXPECT_EQ(reply.stream(), std::nullopt);
}

TEST_F(FunctionServerTest, TellsWhatItComputesWithWhileItIsReady) {
  const RawReply reply = Ask("GET /readyz", "");
  EXPECT_NE(reply.head.find("Content-Type: application/json"), std::string::npos) << reply.head;
  EXPECT_EQ(reply.body, "{\"isa\":\"avx2\",\"libtorch\":\"1.0, built in\"}\n");
  server_.SetNotReady();
  EXPECT_EQ(Ask("GET /readyz", "").body, "draining\n");
}

// The body is announced and never sent: an answer proves that the server did not wait for it.
TEST_F(FunctionServerTest, NoByteOfABodyIsReadWithoutTheKey) {
  auto server = HttpServer::ListenTcp(runtime_, server_, "127.0.0.1", 0, HttpServerLimits{});
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  std::vector<std::unique_ptr<RawConnection>> open;
  for (const char* target : {"GET /healthz", "POST /healthz", "HEAD /readyz", "PUT /readyz",
                             "POST /v1/slices", "GET /metrics", "POST /"}) {
    for (const char* body : {"Content-Length: 4194304", "Transfer-Encoding: chunked",
                             "Content-Length: 4194304\r\nExpect: 100-continue"}) {
      SCOPED_TRACE(std::string(target) + ", " + body);
      auto& connection =
          *open.emplace_back(std::make_unique<RawConnection>("127.0.0.1", (*server)->port()));
      ASSERT_TRUE(connection.Send(std::string(target) + " HTTP/1.1\r\n" + body + "\r\n\r\n"));
      const RawReply reply = ParseReply(connection.ReadUntil("\r\n\r\n"));
      EXPECT_EQ(reply.status, 401);
      EXPECT_NE(reply.head.find("Connection: close"), std::string::npos) << reply.head;
    }
  }
}

// As many strangers as there are connections, each with the largest body that is taken at all: what
// they send is thrown away unread, and the server is as large as before.
TEST_F(FunctionServerTest, StrangersCostNoMemory) {
  HttpServerLimits limits;
  limits.connections = 64;
  auto server = HttpServer::ListenTcp(runtime_, server_, "127.0.0.1", 0, limits);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  const std::string piece(256 * 1024, 'x');
  ASSERT_EQ(Fetch((*server)->port(), "GET /healthz").status, 200);
  const int64_t before = ResidentBytes();
  std::vector<std::unique_ptr<RawConnection>> open;
  for (int i = 0; i < limits.connections; ++i) {
    auto& connection =
        *open.emplace_back(std::make_unique<RawConnection>("127.0.0.1", (*server)->port()));
    if (!connection.Send("POST /healthz HTTP/1.1\r\nContent-Length: 4194304\r\n\r\n")) continue;
    for (int sent = 0; sent < 4 && connection.Send(piece);) ++sent;
  }
  EXPECT_LT(ResidentBytes() - before, int64_t{32} << 20) << "64 bodies are 256 MiB";
}

// In plain text, beside a function with a certificate. The body is announced and never sent.
TEST_F(FunctionServerTest, BesideTlsThePlainPortAnswersTheProbesAlone) {
  ProbeServer probes(server_, 8443);
  auto server = HttpServer::ListenTcp(runtime_, probes, "127.0.0.1", 0, HttpServerLimits{});
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  for (const char* target : {"POST /v1/slices", "GET /v1/slices", "DELETE /v1/slices/x",
                             "GET /metrics", "POST /readyz", "PUT /healthz", "GET /"}) {
    SCOPED_TRACE(target);
    RawConnection connection("127.0.0.1", (*server)->port());
    ASSERT_TRUE(connection.Send(std::string(target) + " HTTP/1.1\r\nAuthorization: Bearer " + kKey +
                                "\r\nContent-Length: 4194304\r\n\r\n"));
    const RawReply reply = ParseReply(connection.ReadUntil("8443"));
    EXPECT_EQ(reply.status, 403);
    EXPECT_NE(reply.body.find("over TLS to port 8443"), std::string::npos) << reply.body;
    EXPECT_NE(reply.head.find("Connection: close"), std::string::npos) << reply.head;
  }
  EXPECT_TRUE(slices_.starts().empty());
  EXPECT_EQ(Fetch((*server)->port(), "GET /healthz").status, 200);
  EXPECT_EQ(Fetch((*server)->port(), "GET /readyz").status, 200);
  server_.SetNotReady();
  EXPECT_EQ(Fetch((*server)->port(), "GET /readyz").status, 503);
}

TEST_F(FunctionServerTest, ADrainingFunctionIsHealthyButNotReady) {
  server_.SetNotReady();
  EXPECT_EQ(Ask("GET /healthz", "").status, 200);
  EXPECT_EQ(Ask("GET /readyz", "").status, 503);
}

TEST_F(FunctionServerTest, EverythingElseNeedsTheKey) {
  for (const char* target : {"GET /v1/slices", "POST /v1/slices", "DELETE /v1/slices/x",
                             "GET /metrics", "GET /", "GET /unknown", "POST /readyz/x"}) {
    for (const char* key : {"", "0", "0123456789abcdeF", "0123456789abcdef0", "0123456789abcde"}) {
      const RawReply reply = Ask(target, key);
      EXPECT_EQ(reply.status, 401) << target << " with " << key;
      EXPECT_NE(reply.head.find("WWW-Authenticate: Bearer"), std::string::npos);
    }
  }
  const std::string other_scheme =
      "GET /v1/slices HTTP/1.1\r\nAuthorization: " + std::string(kKey) + "\r\n\r\n";
  EXPECT_EQ(ParseReply(ServeBytes(server_, {}, other_scheme)).status, 401);
  EXPECT_TRUE(slices_.starts().empty());
}

TEST_F(FunctionServerTest, StreamsTheLinesOfASlice) {
  slices_.lines = {"{\"type\":\"progress\"}", "{\"type\":\"completed\"}"};
  const RawReply reply = Post("a");
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.head.find("Content-Type: application/x-ndjson"), std::string::npos);
  EXPECT_EQ(reply.body, "{\"type\":\"progress\"}\n{\"type\":\"completed\"}\n");
  EXPECT_TRUE(reply.complete);
  ASSERT_EQ(slices_.starts().size(), 1u);
  EXPECT_EQ(slices_.starts()[0].invocation, "a");
  EXPECT_EQ(slices_.starts()[0].job.uid, "job-1");
}

TEST_F(FunctionServerTest, ASilentSliceGetsHeartbeats) {
  slices_.lines = {"{}"};
  slices_.heartbeats = 2;
  EXPECT_EQ(Post("a").body, std::string("{}\n") + kHeartbeat + kHeartbeat);
}

TEST_F(FunctionServerTest, HeartbeatsAreLinesOfTheProtocol) {
  std::string line = kHeartbeat;
  line.pop_back();
  const auto decoded = DecodeSliceLine(line);
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  ASSERT_TRUE(decoded->has_value());
  EXPECT_TRUE(std::get<ProgressLine>(**decoded).heartbeat);
}

TEST_F(FunctionServerTest, AttachingBeginsAtTheLineAskedFor) {
  slices_.lines = {"0", "1", "2"};
  EXPECT_EQ(Post("a").body, "0\n1\n2\n");
  EXPECT_EQ(Post("a", "?from=0").body, "0\n1\n2\n");
  EXPECT_EQ(Post("a", "?from=2").body, "2\n");
  EXPECT_EQ(Post("a", "?from=3").body, "");
  EXPECT_EQ(Post("a", "?from=-1").status, 400);
  EXPECT_EQ(Post("a", "?from=x").status, 400);
}

TEST_F(FunctionServerTest, AWindowEndsTheAnswerAndNotTheSlice) {
  slices_.lines = {"0", "1", "2"};
  slices_.heartbeats = 1'000'000;  // it goes on
  EXPECT_EQ(Post("a", "?windowMs=60000").body, "0\n") << "the first line does not wait";
  EXPECT_EQ(slices_.starts().size(), 1u);
  const Instant asked = runtime_.clock.Now();
  const RawReply reply = Post("a", "?from=1&attach=true&windowMs=50");
  EXPECT_TRUE(reply.complete);
  EXPECT_TRUE(reply.body.starts_with(std::string("1\n2\n") + kHeartbeat)) << reply.body;
  EXPECT_GE(runtime_.clock.Now() - asked, FromSeconds(0.05));
  // Even the shortest has a line.
  EXPECT_EQ(Post("a", "?from=2&attach=true&windowMs=0").body, "2\n");
  EXPECT_EQ(Post("a", "?windowMs=-1").status, 400);
  EXPECT_EQ(Post("a", "?windowMs=60001").status, 400);
}

TEST_F(FunctionServerTest, WhatIsOnlyAttachedToIsNotBegun) {
  EXPECT_EQ(Post("a", "?attach=true").status, 404);
  EXPECT_TRUE(slices_.starts().empty());
  slices_.heartbeats = 2;
  EXPECT_EQ(Post("a", "?attach=false").body, std::string(kHeartbeat) + kHeartbeat);
  slices_.lines = {"0", "1"};
  EXPECT_EQ(Post("a", "?from=1&attach=true").body, "1\n");
  EXPECT_EQ(Post("b", "?attach=true").status, 404);
  EXPECT_EQ(Post("a", "?attach=maybe").status, 400);
}

TEST_F(FunctionServerTest, ABusyFunctionSaysWithWhat) {
  slices_.refusal = AlreadyExistsError("the-other");
  const RawReply reply = Post("b");
  EXPECT_EQ(reply.status, 409);
  EXPECT_EQ(reply.body, "{\"running\":\"the-other\"}\n");
}

TEST_F(FunctionServerTest, RefusalsKeepTheirReason) {
  slices_.refusal = FailedPreconditionError("fenced: leader epoch 1 < 2");
  const RawReply fenced = Post("b");
  EXPECT_EQ(fenced.status, 412);
  EXPECT_NE(fenced.body.find("fenced: leader epoch 1 < 2"), std::string::npos);
  slices_.refusal = InvalidArgumentError("no such role");
  EXPECT_EQ(Post("b").status, 400);
}

TEST_F(FunctionServerTest, ABodyThatIsNoRequestIsRefusedWithTheField) {
  EXPECT_EQ(Ask("POST /v1/slices", kKey, "").status, 400);
  EXPECT_EQ(Ask("POST /v1/slices", kKey, "{").status, 400);
  const RawReply reply = Ask("POST /v1/slices", kKey, "{\"invocation\": 1}");
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("invocation"), std::string::npos) << reply.body;
  EXPECT_TRUE(slices_.starts().empty());
}

TEST_F(FunctionServerTest, SaysWhatRuns) {
  EXPECT_EQ(Ask("GET /v1/slices").body, "{\"running\":null}\n");
  slices_.Start(MinimalSliceRequest("a")).ok();
  EXPECT_EQ(Ask("GET /v1/slices").body, "{\"running\":\"a\"}\n");
}

TEST_F(FunctionServerTest, StopsGracefullyUnlessToldOtherwise) {
  for (const char* query : {"", "?graceful=true", "?graceful=false"}) {
    slices_.Start(MinimalSliceRequest("a")).ok();
    EXPECT_EQ(Ask("DELETE /v1/slices/a" + std::string(query)).status, 202);
  }
  EXPECT_EQ(slices_.stops,
            (std::vector<std::pair<std::string, bool>>{{"a", true}, {"a", true}, {"a", false}}));
  EXPECT_EQ(Ask("DELETE /v1/slices/b").status, 404);
  EXPECT_EQ(Ask("DELETE /v1/slices/a?graceful=yes").status, 400);
  EXPECT_EQ(Ask("DELETE /v1/slices/").status, 404);
  EXPECT_EQ(Ask("PUT /v1/slices").status, 405);
  EXPECT_EQ(Ask("GET /v1/slices/a").status, 405);
}

TEST_F(FunctionServerTest, CountsRequestsInItsMetrics) {
  Ask("GET /v1/slices");
  Ask("GET /unknown");
  Ask("GET /v1/slices", "wrong");
  const RawReply reply = Ask("GET /metrics");
  EXPECT_EQ(reply.status, 200);
  for (const char* line :
       {"lambdadnn_http_requests_total{code=\"200\"} 1\n",
        "lambdadnn_http_requests_total{code=\"404\"} 1\n",
        "lambdadnn_http_unauthenticated_requests_total 1\n", "lambdadnn_slice_running 0\n"}) {
    EXPECT_NE(reply.body.find(line), std::string::npos) << line << reply.body;
  }
}

TEST_F(FunctionServerTest, ServesProbesWhileStreamsRun) {
  slices_.heartbeats = 1 << 30;
  auto http = HttpServer::ListenTcp(runtime_, server_, "127.0.0.1", 0, HttpServerLimits{});
  ASSERT_TRUE(http.ok());
  RawConnection stream("127.0.0.1", (*http)->port());
  const std::string body = EncodeSliceRequest(MinimalSliceRequest("a"));
  stream.Send("POST /v1/slices HTTP/1.1\r\nAuthorization: Bearer " + std::string(kKey) +
              "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  ASSERT_NE(stream.ReadUntil("heartbeat").find("heartbeat"), std::string::npos);
  EXPECT_EQ(Fetch((*http)->port(), "GET /readyz").status, 200);
  EXPECT_EQ(Fetch((*http)->port(), "GET /v1/slices", kKey).body, "{\"running\":\"a\"}\n");
}

}  // namespace
}  // namespace lambdadnn
