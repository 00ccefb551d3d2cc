// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_server.h"

#include <gtest/gtest.h>

#include <atomic>

#include "common/http/pinned_certificate.h"
#include "tests/support/paths.h"
#include "tests/support/raw_http.h"
#include "tests/support/raw_tls.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

// Echoes; refuses everything with the key "bad"; /stream gives as many pieces as asked for.
class EchoHandler final : public HttpServerHandler {
 public:
  std::optional<HttpServerReply> Admit(const HttpServerRequest& head) override {
    ++admitted;
    if (head.authorization == "Bearer bad") return ErrorReply(UnauthenticatedError("no"));
    return std::nullopt;
  }
  HttpServerReply Handle(HttpServerRequest request) override {
    ++handled;
    HttpServerReply reply;
    reply.content_type = "text/plain";
    if (request.path == "/stream") {
      reply.stream = [this, left = std::stoi(
                                request.query["pieces"])]() mutable -> std::optional<std::string> {
        ++pieces;
        return left-- > 0 ? std::optional<std::string>("piece\n") : std::nullopt;
      };
      return reply;
    }
    reply.body = request.method + " " + request.path;
    for (const auto& [name, value] : request.query) reply.body += " " + name + "=" + value;
    reply.body += " " + request.body;
    return reply;
  }
  std::atomic<int> admitted{0};
  std::atomic<int> handled{0};
  std::atomic<int> pieces{0};
};

class HttpServerTest : public testing::Test {
 protected:
  void Listen() {
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::ListenTcp(runtime_, handler_, "127.0.0.1", 0, limits_);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
  }
  int port() const { return server_->port(); }
  std::string Serve(std::string_view bytes) { return ServeBytes(handler_, limits_, bytes); }

  SystemRuntime runtime_;
  EchoHandler handler_;
  HttpServerLimits limits_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersARequestWithABody) {
  Listen();
  const RawReply reply = Fetch(port(), "POST /a%20b?x=1&y=%41", "key", "hello");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "POST /a b x=1 y=A hello");
  EXPECT_TRUE(reply.complete);
}

TEST_F(HttpServerTest, StreamsPiecesAsChunksAndEndsThem) {
  Listen();
  const RawReply reply = Fetch(port(), "GET /stream?pieces=3");
  EXPECT_EQ(reply.body, "piece\npiece\npiece\n");
  EXPECT_TRUE(reply.complete);
  EXPECT_TRUE(Fetch(port(), "GET /stream?pieces=0").complete);
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  Listen();
  RawConnection connection("127.0.0.1", port());
  connection.Send(
      "GET /1 HTTP/1.1\r\n\r\nPOST /2 HTTP/1.1\r\nContent-Length: 2\r\n\r\nok"
      "GET /3 HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string answers = connection.ReadAll();
  const size_t first = answers.find("GET /1");
  const size_t second = answers.find("POST /2 ok");
  const size_t third = answers.find("GET /3");
  ASSERT_NE(third, std::string::npos) << answers;
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
}

TEST_F(HttpServerTest, RefusesFromTheHeaderWithoutReadingTheBody) {
  Listen();
  RawConnection connection("127.0.0.1", port());
  connection.Send(
      "POST / HTTP/1.1\r\nAuthorization: Bearer bad\r\nContent-Length: 1000000\r\n\r\nsome");
  const RawReply reply = ParseReply(connection.ReadUntil("\"no\""));
  EXPECT_EQ(reply.status, 401);
  EXPECT_NE(reply.head.find("Connection: close"), std::string::npos);
  EXPECT_EQ(handler_.handled, 0);
}

TEST_F(HttpServerTest, RefusesOversizedHeadersAndBodies) {
  limits_.header_bytes = 1024;
  limits_.body_bytes = 10;
  Listen();
  RawConnection header("127.0.0.1", port());
  header.Send("GET / HTTP/1.1\r\nX: " + std::string(4096, 'x') + "\r\n\r\n");
  EXPECT_EQ(ParseReply(header.ReadAll()).status, 431);
  EXPECT_EQ(Fetch(port(), "POST /", "", std::string(10, 'x')).status, 200);
  EXPECT_EQ(Fetch(port(), "POST /", "", std::string(11, 'x')).status, 413);
  RawConnection chunked("127.0.0.1", port());
  chunked.Send(
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nxxxxxxxxxxx\r\n0\r\n\r\n");
  EXPECT_EQ(ParseReply(chunked.ReadAll()).status, 413);
  EXPECT_EQ(handler_.handled, 1);
}

TEST_F(HttpServerTest, ClosesAConnectionThatDripsItsHeader) {
  limits_.header_seconds = 0.2;
  Listen();
  RawConnection connection("127.0.0.1", port());
  connection.Send("GET / HTTP/1.1\r\n");
  EXPECT_EQ(connection.ReadAll(), "");  // closed by the server, well before ReadAll gives up
  EXPECT_EQ(handler_.admitted, 0);
}

TEST_F(HttpServerTest, ClosesAConnectionThatDripsItsBody) {
  limits_.body_seconds = 0.2;
  Listen();
  RawConnection connection("127.0.0.1", port());
  connection.Send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_EQ(connection.ReadAll(), "");
  EXPECT_EQ(handler_.handled, 0);
}

TEST_F(HttpServerTest, ClosesConnectionsBeyondTheLimitAndServesTheOthers) {
  limits_.connections = 2;
  Listen();
  RawConnection first("127.0.0.1", port());
  RawConnection second("127.0.0.1", port());
  first.Send("GET /1 HTTP/1.1\r\n\r\n");
  EXPECT_NE(first.ReadUntil("GET /1 "), "");
  second.Send("GET /2 HTTP/1.1\r\n\r\n");
  EXPECT_NE(second.ReadUntil("GET /2 "), "");
  RawConnection third("127.0.0.1", port());
  third.Send("GET /3 HTTP/1.1\r\n\r\n");
  EXPECT_EQ(third.ReadAll(), "");
  first.Close();
  // The place is free once the server has noticed.
  for (int i = 0; i < 100 && Fetch(port(), "GET /4").status != 200; ++i) {
    runtime_.clock.SleepFor(FromSeconds(0.01));
  }
  EXPECT_EQ(Fetch(port(), "GET /4").status, 200);
}

TEST_F(HttpServerTest, RefusesStreamsBeyondTheLimit) {
  limits_.streams = 1;
  Listen();
  RawConnection endless("127.0.0.1", port());
  endless.Send("GET /stream?pieces=1000000000 HTTP/1.1\r\n\r\n");
  ASSERT_NE(endless.ReadUntil("piece"), "");
  EXPECT_EQ(Fetch(port(), "GET /stream?pieces=1").status, 503);
  EXPECT_EQ(Fetch(port(), "GET /other").status, 200);
}

TEST_F(HttpServerTest, StopsAStreamWhosePeerHasLeft) {
  Listen();
  {
    RawConnection endless("127.0.0.1", port());
    endless.Send("GET /stream?pieces=1000000000 HTTP/1.1\r\n\r\n");
    ASSERT_NE(endless.ReadUntil("piece"), "");
  }
  for (int i = 0; i < 500 && server_->ActiveReplies() > 0; ++i) {
    runtime_.clock.SleepFor(FromSeconds(0.01));
  }
  EXPECT_EQ(server_->ActiveReplies(), 0);
}

TEST_F(HttpServerTest, EndsWhileStreamsAndIdleConnectionsAreOpen) {
  Listen();
  RawConnection endless("127.0.0.1", port());
  endless.Send("GET /stream?pieces=1000000000 HTTP/1.1\r\n\r\n");
  ASSERT_NE(endless.ReadUntil("piece"), "");
  RawConnection idle("127.0.0.1", port());
  idle.Send("GET / HTTP/1.1\r\n\r\n");
  ASSERT_NE(idle.ReadUntil("GET /"), "");
  server_.reset();
  EXPECT_EQ(idle.ReadAll(), "");
}

TEST_F(HttpServerTest, AnswersContinueToAPeerThatAsks) {
  Listen();
  RawConnection connection("127.0.0.1", port());
  connection.Send(
      "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(connection.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  connection.Send("hi");
  EXPECT_EQ(ParseReply(connection.ReadAll()).body, "POST / hi");
}

TEST_F(HttpServerTest, SaysWhichAddressIsInUse) {
  Listen();
  const auto second = HttpServer::ListenTcp(runtime_, handler_, "127.0.0.1", port(), limits_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find(std::to_string(port())), std::string::npos);
}

class HttpServerTlsTest : public HttpServerTest {
 protected:
  void Listen() {
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::ListenTcp(runtime_, handler_, "127.0.0.1", 0, limits_, identity_);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
  }
  const TlsIdentity identity_ = MakeTlsIdentity("test").value();
};

TEST_F(HttpServerTlsTest, AnswersAndStreamsAsInPlainText) {
  Listen();
  const RawReply reply = FetchTls(port(), "POST /a?x=1", "key", std::string(100'000, 'b'));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "POST /a x=1 " + std::string(100'000, 'b'));
  EXPECT_TRUE(reply.complete);
  const RawReply stream = FetchTls(port(), "GET /stream?pieces=3");
  EXPECT_EQ(stream.body, "piece\npiece\npiece\n");
  EXPECT_TRUE(stream.complete);
}

TEST_F(HttpServerTlsTest, AnOlderTlsIsRefused) {
  Listen();
  EXPECT_EQ(FetchTls(port(), "GET /", "", "", TLS1_2_VERSION).status, 0);
  EXPECT_EQ(handler_.admitted, 0);
  EXPECT_EQ(FetchTls(port(), "GET /").status, 200);
}

TEST_F(HttpServerTlsTest, PlainTextEndsTheConnection) {
  Listen();
  RawConnection connection("127.0.0.1", port());
  connection.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(ParseReply(connection.ReadAll()).status, 0);
  EXPECT_EQ(handler_.admitted, 0);
}

TEST_F(HttpServerTlsTest, AHandshakeThatHangsIsClosedAndDelaysNoOther) {
  limits_.header_seconds = 0.5;
  Listen();
  RawConnection silent("127.0.0.1", port());
  RawConnection cut("127.0.0.1", port());
  cut.Send("\x16\x03\x01");
  EXPECT_EQ(FetchTls(port(), "GET /").status, 200);
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_EQ(cut.ReadAll(), "");
}

TEST_F(HttpServerTlsTest, ClosesItsConnectionsWhenItEnds) {
  Listen();
  RawConnection during("127.0.0.1", port());
  server_.reset();
  EXPECT_EQ(during.ReadAll(), "");
}

TEST_F(HttpServerTlsTest, AnIdentityThatIsNoneIsRefused) {
  const auto server = HttpServer::ListenTcp(runtime_, handler_, "127.0.0.1", 0, limits_,
                                            TlsIdentity{identity_.certificate, "no key"});
  EXPECT_EQ(server.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(HttpServerTest, ServesAUnixSocketOfTheOwnerAlone) {
  const std::string path = MakeTempDir() + "/socket";
  auto server = HttpServer::ListenUnix(runtime_, handler_, path, limits_);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  EXPECT_EQ(FetchUnix(path, "GET /x").body, "GET /x ");
  EXPECT_FALSE(HttpServer::ListenUnix(runtime_, handler_, path, limits_).ok());
  EXPECT_EQ(
      HttpServer::ListenUnix(runtime_, handler_, std::string(200, 'p'), limits_).status().code(),
      StatusCode::kInvalidArgument);
}

TEST_F(HttpServerTest, RefusesGarbage) {
  for (const char* garbage :
       {"\x16\x03\x01\x02\x00\x01", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "GET nopath HTTP/1.1\r\n\r\n",
        "GET /%zz HTTP/1.1\r\n\r\n", "GET /?a=%1 HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"}) {
    EXPECT_EQ(ParseReply(Serve(garbage)).status, 400) << garbage;
  }
  EXPECT_EQ(handler_.handled, 0);
}

TEST_F(HttpServerTest, AnswersNothingToARequestThatNeverEnds) {
  EXPECT_EQ(Serve("GET / HTTP/1.1\r\n"), "");
  EXPECT_EQ(Serve("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab"), "");
  EXPECT_EQ(handler_.handled, 0);
}

TEST_F(HttpServerTest, ServesTheSameInMemory) {
  EXPECT_EQ(ParseReply(Serve("POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\nab")).body,
            "POST /x ab");
  EXPECT_EQ(ParseReply(Serve("GET /stream?pieces=2 HTTP/1.1\r\n\r\n")).body, "piece\npiece\n");
  const std::string two = Serve("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n");
  EXPECT_NE(two.find("GET /2"), std::string::npos);
}

TEST(HttpServerLimits, RefusesWhatCannotServe) {
  EXPECT_TRUE(HttpServerLimits{}.Validate().ok());
  HttpServerLimits limits;
  limits.connections = 0;
  EXPECT_FALSE(limits.Validate().ok());
}

}  // namespace
}  // namespace lambdadnn
