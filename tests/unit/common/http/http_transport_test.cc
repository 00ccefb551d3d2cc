// SPDX-License-Identifier: Apache-2.0
// The transports against servers that answer, and misbehave, byte by byte as written here.
#include "common/http/http_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>

#include "common/base/executor.h"
#include "common/base/text.h"
#include "tests/support/raw_server.h"
#include "tests/unit/common/http/both_transports.h"

namespace lambdadnn {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class HttpTransportTest : public testing::TestWithParam<HttpClientKind> {
 protected:
  static std::unique_ptr<HttpTransport> New(const HttpTransportOptions& options) {
    return NewHttpClient(GetParam(), options).value();
  }
  Result<HttpResponse> Send(const HttpRequest& request, double inactivity_seconds = 10) {
    if (transport_ == nullptr) transport_ = New({.inactivity_seconds = inactivity_seconds});
    return transport_->Send(request);
  }
  static HttpRequest Make(const std::string& method, const std::string& url) {
    HttpRequest request;
    request.method = method;
    request.url = url;
    return request;
  }
  std::unique_ptr<HttpTransport> transport_;
};

TEST_P(HttpTransportTest, SendsPathFieldsAndPiecesAsTheyAre) {
  std::string seen;
  RawServer server({[&](int fd) {
    seen = ReadRequest(fd);
    Write(fd, "HTTP/1.1 418 Teapot\r\nX-Kind: tea\r\nContent-Length: 5\r\n\r\nempty");
  }});
  HttpRequest request = Make("PUT", server.Url("/a%20b%2Bc/%C3%BC?x=%2F&y="));
  request.fields = {{"X-One", "1"}};
  const std::string large(3'000'000, 'L');
  request.body = {AsBytes("head"), ByteView(), AsBytes(large)};
  const Result<HttpResponse> response = Send(request);
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(response->status, 418);
  EXPECT_EQ(FindField(response->fields, "x-kind"), "tea");
  EXPECT_EQ(FindField(response->fields, "absent"), "");
  EXPECT_EQ(AsText(response->body), "empty");
  EXPECT_TRUE(seen.starts_with("PUT /a%20b%2Bc/%C3%BC?x=%2F&y= HTTP/1.1\r\n"))
      << seen.substr(0, 80);
  EXPECT_THAT(seen.substr(0, 400), ContainsRegex("X-One: ?1\r\n"));
  EXPECT_THAT(seen.substr(0, 400), ContainsRegex("Content-Length: ?3000004\r\n"));
  EXPECT_TRUE(seen.ends_with("\r\n\r\nhead" + large));
}

TEST_P(HttpTransportTest, ConnectionsAreKeptAlive) {
  // A connection that is not back in the pool yet when the next request begins is no fault.
  constexpr int kRequests = 40;
  RawServer server({AnswerWith(std::string(kOk), kRequests)});
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(Send(Make("GET", server.Url())).ok());
  EXPECT_LE(server.connections(), kRequests / 4);
}

TEST_P(HttpTransportTest, StaleConnectionCostsOneRepetitionWithTheWholeBody) {
  std::string second;
  RawServer server({AnswerWith(std::string(kOk), 1), [&](int fd) {
                      second = ReadRequest(fd);
                      Write(fd, kOk);
                    }});
  ASSERT_TRUE(Send(Make("GET", server.Url())).ok());
  HttpRequest put = Make("PUT", server.Url());
  put.body = {AsBytes("all of"), AsBytes(" the body")};
  const Result<HttpResponse> response = Send(put);
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_TRUE(second.ends_with("\r\n\r\nall of the body")) << second;
  EXPECT_EQ(server.connections(), 2);
}

// The server's end and the request pass each other on their ways.
TEST_P(HttpTransportTest, ConnectionThatEndsWithTheRequestCostsOneRepetitionToo) {
  for (const bool repeatable : {true, false}) {
    RawServer server({[](int fd) {
                        ReadRequest(fd);
                        Write(fd, kOk);
                        ReadRequest(fd);
                      },
                      AnswerWith(std::string(kOk))});
    const auto transport = New({.inactivity_seconds = 10});
    ASSERT_TRUE(transport->Send(Make("GET", server.Url())).ok());
    HttpRequest put = Make("PUT", server.Url());
    put.body = {AsBytes("body")};
    put.repeatable = repeatable;
    const Result<HttpResponse> response = transport->Send(put);
    EXPECT_EQ(response.status().code(), repeatable ? StatusCode::kOk : StatusCode::kUnavailable);
    EXPECT_EQ(server.connections(), repeatable ? 2 : 1);
  }
}

TEST(HttpTransport, FieldsWithLineEndsAreRefused) {
  for (const HttpFields& fields :
       {HttpFields{{"X", "1\r\nHost: other"}}, HttpFields{{"X: 1\nY", "2"}}}) {
    HttpRequest request;
    request.method = "GET";
    request.url = "http://127.0.0.1:1/";
    request.fields = fields;
    EXPECT_EQ(NewDataTransport({}).value()->Send(request).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_P(HttpTransportTest, WhatMustNotBeRepeatedIsNot) {
  RawServer server({[](int fd) { ReadRequest(fd); }});
  HttpRequest put = Make("PUT", server.Url());
  put.body = {AsBytes("once")};
  put.repeatable = false;
  EXPECT_EQ(Send(put).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(server.connections(), 1);
}

TEST_P(HttpTransportTest, CutAnswersAreUnavailableNeverShort) {
  for (const std::string cut :
       {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "HTTP/1.1 200 OK\r\nCont",
        "", "this is not HTTP\r\n\r\n"}) {
    RawServer server({AnswerWith(cut)});
    const Result<HttpResponse> response = Send(Make("GET", server.Url()));
    EXPECT_EQ(response.status().code(), StatusCode::kUnavailable) << cut;
    EXPECT_THAT(response.status().message(), HasSubstr(server.Url().substr(0, 16))) << cut;
  }
}

TEST_P(HttpTransportTest, ChunkedAnswersAreJoined) {
  RawServer server(
      {AnswerWith("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n "
                  "world\r\n0\r\n\r\n")});
  EXPECT_EQ(AsText(Send(Make("GET", server.Url()))->body), "hello world");
}

TEST_P(HttpTransportTest, HeadHasALengthAndNoBody) {
  RawServer server({AnswerWith("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", 2)});
  for (int i = 0; i < 2; ++i) {
    const Result<HttpResponse> response = Send(Make("HEAD", server.Url()));
    ASSERT_TRUE(response.ok()) << response.status().ToString();
    EXPECT_EQ(FindField(response->fields, "Content-Length"), "1234");
    EXPECT_TRUE(response->body.empty());
  }
}

TEST_P(HttpTransportTest, SilenceEndsInUnavailable) {
  RawServer server({[](int fd) {
    ReadRequest(fd);
    ReadRequest(fd);  // until the client has had enough
  }});
  const Result<HttpResponse> response = Send(Make("GET", server.Url()), 0.3);
  EXPECT_EQ(response.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(response.status().message(), HasSubstr("in time"));
}

TEST_P(HttpTransportTest, SilenceInsideABodyEndsInUnavailable) {
  RawServer server({[](int fd) {
    ReadRequest(fd);
    Write(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nstart");
    ReadRequest(fd);
  }});
  EXPECT_EQ(Send(Make("GET", server.Url()), 0.3).status().code(), StatusCode::kUnavailable);
}

TEST_P(HttpTransportTest, UnreachableServerIsNamed) {
  std::string url;
  {
    RawServer server({AnswerWith(std::string(kOk))});
    url = server.Url();
  }
  const Status status = Send(Make("GET", url)).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr(url.substr(0, url.size() - 1)));
  EXPECT_THAT(status.message(), HasSubstr("is the server running"));
  EXPECT_EQ(Send(Make("GET", "http://no-such-host.invalid/")).status().code(),
            StatusCode::kUnavailable);
}

TEST_P(HttpTransportTest, RedirectsAreAnswers) {
  RawServer server({AnswerWith(
      "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")});
  EXPECT_EQ(Send(Make("GET", server.Url()))->status, 307);
}

TEST_P(HttpTransportTest, BodiesStreamWhileTheyArrive) {
  std::atomic<bool> got_first{false};
  RawServer server({[&](int fd) {
    ReadRequest(fd);
    Write(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    while (!got_first) SystemClock().SleepFor(FromSeconds(0.001));
    Write(fd, "6\r\nsecond\r\n0\r\n\r\n");
  }});
  HttpRequest request = Make("GET", server.Url());
  std::string text;
  request.on_body = [&](ByteView piece) {
    text += AsText(piece);
    got_first = true;
    return true;
  };
  const Result<HttpResponse> response = Send(request);
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(text, "firstsecond");
  EXPECT_TRUE(response->body.empty());
}

TEST_P(HttpTransportTest, StreamsEndWhenTheCallerHasEnough) {
  RawServer server({[&](int fd) {
    ReadRequest(fd);
    Write(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    ReadRequest(fd);  // returns when the client closes
  }});
  HttpRequest request = Make("GET", server.Url());
  request.on_body = [](ByteView) { return false; };
  EXPECT_EQ(Send(request).status().code(), StatusCode::kCancelled);
}

TEST_P(HttpTransportTest, AllOfARequestHasATime) {
  // Never silent, never done.
  RawServer server({[](int fd) {
    ReadRequest(fd);
    Write(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    std::array<char, 1> byte{};
    timeval patience{.tv_sec = 0, .tv_usec = 20'000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while (recv(fd, byte.data(), 1, 0) != 0) Write(fd, "1\r\nx\r\n");
  }});
  HttpRequest request = Make("GET", server.Url());
  request.total_seconds = 0.3;
  const Result<HttpResponse> response = Send(request);
  EXPECT_EQ(response.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(response.status().message(), HasSubstr("within 0.3 s"));
}

TEST_P(HttpTransportTest, AnotherThreadEndsARequest) {
  for (const bool streaming : {false, true}) {
    const auto cancellation = std::make_shared<HttpCancellation>();
    // Ends the request while the client waits: for the head, or for more of the body.
    RawServer server({[&](int fd) {
      ReadRequest(fd);
      if (streaming) Write(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
      if (!streaming) cancellation->Cancel();
      ReadRequest(fd);  // until the client closes
    }});
    ThreadExecutor executor;
    std::unique_ptr<Task> other;
    HttpRequest request = Make("GET", server.Url());
    request.cancellation = cancellation;
    request.on_body = [&](ByteView) {
      other = executor.Spawn("cancel", [&] { cancellation->Cancel(); });
      return true;
    };
    EXPECT_EQ(Send(request, 60).status().code(), StatusCode::kCancelled) << streaming;
  }
}

TEST_P(HttpTransportTest, CancelledBeforehandIsNotSent) {
  RawServer server({AnswerWith(std::string(kOk))});
  HttpRequest request = Make("POST", server.Url());
  request.cancellation = std::make_shared<HttpCancellation>();
  request.cancellation->Cancel();
  EXPECT_EQ(Send(request).status().code(), StatusCode::kCancelled);
}

TEST(HttpTransport, ProxyGetsWholeUrls) {
  std::string seen;
  RawServer proxy({[&](int fd) {
    seen = ReadRequest(fd);
    Write(fd, kOk);
  }});
  const auto transport =
      NewHttpTransport({.inactivity_seconds = 10, .proxy_url = proxy.Url("")}).value();
  HttpRequest request;
  request.method = "GET";
  request.url = "http://api.invalid:8080/apis?limit=1";
  const Result<HttpResponse> response = transport->Send(request);
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_TRUE(seen.starts_with("GET http://api.invalid:8080/apis?limit=1 HTTP/1.1\r\n")) << seen;
  const Status data = NewDataTransport({.proxy_url = proxy.Url("")}).status();
  EXPECT_EQ(data.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(data.message(), HasSubstr("name the server itself"));
}

TEST_P(HttpTransportTest, LongAnswersAreRefused) {
  RawServer server({AnswerWith("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nlonger"),
                    AnswerWith("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "6\r\nlonger\r\n0\r\n\r\n")});
  for (int i = 0; i < 2; ++i) {
    HttpRequest request = Make("GET", server.Url());
    request.max_response_bytes = 5;
    EXPECT_EQ(Send(request).status().code(), StatusCode::kResourceExhausted);
  }
}

// The transport reads to the limit, however the body is framed, and uses the connection no more.
TEST_P(HttpTransportTest, FloodsEndAtTheLimit) {
  constexpr uint64_t kLimit = 100'000;
  const std::string length = "Content-Length: 1099511627776\r\n\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n";
  for (const std::string status : {"200 OK", "503 Busy"}) {
    for (const std::string& framing : {length, chunked}) {
      std::atomic<int64_t> sent{0};
      const std::string piece = framing == length ? std::string(65536, 'x') : LargeChunk();
      RawServer server({Flood("HTTP/1.1 " + status + "\r\n" + framing, piece, &sent),
                        AnswerWith(std::string(kOk))});
      HttpRequest request = Make("GET", server.Url());
      request.max_response_bytes = request.max_error_bytes = kLimit;
      const auto transport = New({.inactivity_seconds = 10});
      const Result<HttpResponse> response = transport->Send(request);
      if (status == "200 OK") {
        EXPECT_EQ(response.status().code(), StatusCode::kResourceExhausted) << framing;
        EXPECT_THAT(response.status().message(), HasSubstr("longer than 100000 bytes"));
      } else {
        ASSERT_TRUE(response.ok()) << response.status().ToString();
        EXPECT_EQ(response->status, 503);
        EXPECT_EQ(response->body.size(), kLimit) << "what had come is kept";
      }
      const Result<HttpResponse> next = transport->Send(Make("GET", server.Url()));
      ASSERT_TRUE(next.ok()) << next.status().ToString();
      EXPECT_EQ(AsText(next->body), "ok");
      EXPECT_LT(sent, 64 << 20) << "it is read no further, but for what sockets hold";
    }
  }
}

// Many more at once than the transport has threads: none of them waits for another.
TEST_P(HttpTransportTest, FloodsAtOnceStopNobody) {
  RawServer server({Flood("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", LargeChunk())});
  const auto transport = New({.inactivity_seconds = 60});
  ThreadExecutor executor;
  std::atomic<int> refused{0};
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < 32; ++i) {
    tasks.push_back(executor.Spawn("flooded", [&] {
      HttpRequest request = Make("GET", server.Url());
      request.max_response_bytes = 1000;
      if (transport->Send(request).status().code() == StatusCode::kResourceExhausted) ++refused;
    }));
  }
  for (const auto& task : tasks) task->Join();
  EXPECT_EQ(refused, 32);
}

// A byte now and then keeps the connection active; the total time ends it all the same.
// As with a hostile store: requests end while their bytes still move.
TEST_P(HttpTransportTest, RequestsThatEndWhileBytesMoveEndNothingElse) {
  RawServer server({[](int fd) {
    while (!ReadRequest(fd).empty()) {
      Write(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n");
      for (int i = 0; i < 2000; ++i) Write(fd, "X-Field-" + std::to_string(i) + ": x\r\n");
      Write(fd, "\r\n");
      for (int i = 0; i < 2000; ++i) Write(fd, "1\r\nx\r\n");
      Write(fd, "0\r\n\r\n");
    }
  }});
  const auto transport = New({});
  const std::string body(4 << 20, 'x');
  ThreadExecutor executor;
  std::atomic<int> ended{0};
  std::vector<std::unique_ptr<Task>> tasks;
  for (int task = 0; task < 8; ++task) {
    tasks.push_back(executor.Spawn("client", [&, task] {
      for (int i = 0; i < 100; ++i) {
        HttpRequest request = Make("PUT", server.Url());
        request.body = {AsBytes(body)};
        request.total_seconds = 0.0005 * (1 + (task * 100 + i) % 40);
        if (!transport->Send(request).ok()) ++ended;
      }
    }));
  }
  for (const auto& task : tasks) task->Join();
  EXPECT_GT(ended, 100) << "too few ended early to say anything";
}

TEST_P(HttpTransportTest, DripsEndAfterTheTotalTime) {
  for (const std::string head :
       {"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", "HTTP/1.1 200 OK\r\nX-Long: "}) {
    RawServer server({Drip(head)});
    HttpRequest request = Make("GET", server.Url());
    request.total_seconds = 0.3;
    const Status status = Send(request).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("within 0.3 s"));
  }
}

// What comes at the lowest rate or faster may take longer than that.
TEST_P(HttpTransportTest, MovingBytesGiveMoreTime) {
  RawServer server({[](int fd) {
    ReadRequest(fd);
    Write(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    pollfd closed{.fd = fd, .events = 0, .revents = 0};
    for (int sent = 0; sent < 40 && poll(&closed, 1, 20) == 0; ++sent) Write(fd, "1\r\nx\r\n");
    Write(fd, "0\r\n\r\n");
  }});
  HttpRequest request = Make("GET", server.Url());
  request.total_seconds = 0.3;  // the body takes 0.8 s at least
  request.lowest_bytes_per_second = 1;
  const Result<HttpResponse> response = Send(request);
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(response->body.size(), 40U);
}

TEST_P(HttpTransportTest, WhatIsNoUrlIsRefused) {
  for (const std::string url :
       {"", "/path", "ftp://host/", "http://", "http://ho st/", "host:80"}) {
    EXPECT_EQ(Send(Make("GET", url)).status().code(), StatusCode::kInvalidArgument) << url;
  }
  EXPECT_FALSE(NewHttpClient(GetParam(), {.inactivity_seconds = 0}).ok());
  const Status no_ca = NewHttpClient(GetParam(), {.ca_file = "/none.pem"}).status();
  EXPECT_EQ(no_ca.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(no_ca.message(), HasSubstr("/none.pem"));
}

TEST_P(HttpTransportTest, TlsToAServerWithoutItIsSaid) {
  RawServer server({[](int fd) {
    std::array<char, 1024> hello{};
    (void)recv(fd, hello.data(), hello.size(), 0);
    Write(fd, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  }});
  std::string url = server.Url();
  url.replace(0, 4, "https");
  const Status status = Send(Make("GET", url)).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
  EXPECT_THAT(status.message(), HasSubstr("does not speak TLS"));
}

INSTANTIATE_TEST_SUITE_P(Both, HttpTransportTest,
                         testing::Values(HttpClientKind::kCpprest, HttpClientKind::kData),
                         HttpClientKindName);

}  // namespace
}  // namespace lambdadnn
