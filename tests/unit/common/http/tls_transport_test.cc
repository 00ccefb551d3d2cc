// SPDX-License-Identifier: Apache-2.0
// Who trusts whom: authorities, names, client certificates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>

#include "common/base/executor.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "common/http/http_transport.h"
#include "tests/support/paths.h"
#include "tests/unit/common/http/both_transports.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr std::string_view kTlsOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// A key and a certificate that only it vouches for.
struct Identity {
  explicit Identity(const std::string& name, const std::string& names) : folder(MakeTempDir()) {
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=" +
        name + " -addext subjectAltName=" + names + " -keyout " + folder + "/key.pem -out " +
        folder + "/cert.pem 2>/dev/null";
    if (std::system(command.c_str()) != 0) std::abort();
  }
  std::string certificate_file() const { return folder + "/cert.pem"; }
  std::string key_file() const { return folder + "/key.pem"; }
  std::string certificate() const { return ReadFile(certificate_file()).value(); }
  std::string key() const { return ReadFile(key_file()).value(); }
  const std::string folder;
};

// Answers every request with its own body, or "ok" where it has none; with `client`, only to those
// who show that certificate.
class TlsServer {
 public:
  explicit TlsServer(const Identity* client = nullptr, const std::string& names = "IP:127.0.0.1")
      : identity_("server", names) {
    context_.use_certificate_chain_file(identity_.certificate_file());
    context_.use_private_key_file(identity_.key_file(), boost::asio::ssl::context::pem);
    if (client != nullptr) {
      context_.load_verify_file(client->certificate_file());
      context_.set_verify_mode(boost::asio::ssl::verify_peer |
                               boost::asio::ssl::verify_fail_if_no_peer_cert);
    }
    task_ = executor_.Spawn("tls-server", [this] { Run(); });
  }
  ~TlsServer() {
    shutdown(acceptor_.native_handle(), SHUT_RDWR);
    task_->Join();
  }
  const Identity& identity() const { return identity_; }
  int connections() const { return connections_; }
  std::string Url(const std::string& host = "127.0.0.1") const {
    return "https://" + host + ":" + std::to_string(acceptor_.local_endpoint().port()) + "/";
  }

 private:
  void Run() {
    for (;;) {
      boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream(io_, context_);
      boost::system::error_code error;
      acceptor_.accept(stream.next_layer(), error);
      if (error) return;
      stream.handshake(boost::asio::ssl::stream_base::server, error);
      if (error) continue;
      ++connections_;
      while (Answer(stream)) {
      }
    }
  }
  // False: the connection has ended.
  static bool Answer(boost::asio::ssl::stream<boost::asio::ip::tcp::socket>& stream) {
    boost::system::error_code error;
    std::string request;
    const size_t head =
        boost::asio::read_until(stream, boost::asio::dynamic_buffer(request), "\r\n\r\n", error);
    if (error) return false;
    const std::string lower = LowerCase(request.substr(0, head));
    const size_t length = lower.find("content-length:");
    std::string answer(kTlsOk);
    if (length != std::string::npos) {
      const size_t bytes = std::stoul(lower.substr(length + 15));
      boost::asio::read(stream, boost::asio::dynamic_buffer(request),
                        boost::asio::transfer_exactly(head + bytes - request.size()), error);
      if (error) return false;
      answer = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
               request.substr(head);
    }
    boost::asio::write(stream, boost::asio::buffer(answer), error);
    return !error;
  }

  const Identity identity_;
  boost::asio::io_context io_;
  boost::asio::ssl::context context_{boost::asio::ssl::context::tls_server};
  boost::asio::ip::tcp::acceptor acceptor_{
      io_, boost::asio::ip::tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
  std::atomic<int> connections_{0};
  ThreadExecutor executor_;
  std::unique_ptr<Task> task_;
};

class TlsTransport : public testing::TestWithParam<HttpClientKind> {
 protected:
  static Result<HttpResponse> Get(const std::string& url, const HttpTransportOptions& options,
                                  const HttpFields& fields = {}) {
    LDNN_ASSIGN_OR_RETURN(const std::unique_ptr<HttpTransport> transport,
                          NewHttpClient(GetParam(), options));
    HttpRequest request;
    request.method = "GET";
    request.url = url;
    request.fields = fields;
    return transport->Send(request);
  }
};

TEST_P(TlsTransport, PrivateAuthorityIsTrustedWhenNamed) {
  const TlsServer server;
  const std::string url = server.Url();
  // As signers set it, with the port, which no certificate names.
  const HttpFields host = {{"host", url.substr(8, url.size() - 9)}};
  for (const HttpTransportOptions& options :
       {HttpTransportOptions{.ca_file = server.identity().certificate_file()},
        HttpTransportOptions{.ca_pem = server.identity().certificate()}}) {
    const Result<HttpResponse> response = Get(url, options, host);
    ASSERT_TRUE(response.ok()) << response.status().ToString();
    EXPECT_EQ(AsText(response->body), "ok");
  }
}

// Larger than a record of TLS, in pieces smaller and larger than one.
TEST_P(TlsTransport, BodiesPassWholeOnOneConnection) {
  const TlsServer server;
  const auto transport =
      NewHttpClient(GetParam(), {.ca_pem = server.identity().certificate()}).value();
  for (const size_t size : {size_t{1}, size_t{40'000}, size_t{3'000'000}}) {
    std::string large(size, 'L');
    large.front() = 'F';
    HttpRequest request;
    request.method = "PUT";
    request.url = server.Url();
    request.body = {AsBytes("head"), ByteView(), AsBytes(large), AsBytes("tail")};
    const Result<HttpResponse> response = transport->Send(request);
    ASSERT_TRUE(response.ok()) << response.status().ToString();
    EXPECT_TRUE(AsText(response->body) == "head" + large + "tail") << size;
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST_P(TlsTransport, UnknownAuthorityIsRefusedWithWhatToDo) {
  const TlsServer server;
  const Identity other("other", "IP:127.0.0.1");
  for (const std::string& authority : {std::string(), other.certificate()}) {
    const Status status = Get(server.Url(), {.ca_pem = authority}).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("certificate authority"));
  }
}

TEST_P(TlsTransport, CertificateOfAnotherHostIsRefused) {
  const TlsServer server;
  const Status status =
      Get(server.Url("localhost"), {.ca_pem = server.identity().certificate()}).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
}

TEST_P(TlsTransport, ServerNameStandsForTheHost) {
  const TlsServer server(nullptr, "DNS:kubernetes.default.svc");
  HttpTransportOptions options{.ca_pem = server.identity().certificate()};
  EXPECT_FALSE(Get(server.Url(), options).ok());
  options.server_name = "kubernetes.default.svc";
  const Result<HttpResponse> response = Get(server.Url(), options);
  EXPECT_TRUE(response.ok()) << response.status().ToString();
  options.server_name = "another.svc";
  EXPECT_EQ(Get(server.Url(), options).status().code(), StatusCode::kFailedPrecondition);
}

TEST_P(TlsTransport, AnyCertificateGoesOnlyWhenSaidSo) {
  const TlsServer server;
  EXPECT_FALSE(Get(server.Url(), {}).ok());
  const Result<HttpResponse> response = Get(server.Url(), {.insecure_skip_verify = true});
  EXPECT_TRUE(response.ok()) << response.status().ToString();
}

TEST_P(TlsTransport, ClientCertificateIsShown) {
  const Identity client("client", "DNS:client");
  const Identity stranger("stranger", "DNS:stranger");
  const TlsServer server(&client);
  HttpTransportOptions options{.ca_pem = server.identity().certificate()};
  EXPECT_FALSE(Get(server.Url(), options).ok());
  options.client_certificate_pem = client.certificate();
  options.client_key_pem = client.key();
  const Result<HttpResponse> response = Get(server.Url(), options);
  EXPECT_TRUE(response.ok()) << response.status().ToString();
  options.client_certificate_pem = stranger.certificate();
  options.client_key_pem = stranger.key();
  EXPECT_FALSE(Get(server.Url(), options).ok());
}

TEST_P(TlsTransport, UnreadableMaterialIsNamed) {
  const Identity one("one", "DNS:one");
  const Identity two("two", "DNS:two");
  const auto message = [](const HttpTransportOptions& options) {
    const Status status = NewHttpClient(GetParam(), options).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    return status.message();
  };
  EXPECT_THAT(message({.ca_file = "/none.pem"}), HasSubstr("/none.pem"));
  EXPECT_THAT(message({.ca_pem = "no PEM"}), HasSubstr("hold no certificate"));
  EXPECT_THAT(message({.client_certificate_pem = one.certificate()}), HasSubstr("both or neither"));
  EXPECT_THAT(message({.client_certificate_pem = "x", .client_key_pem = one.key()}),
              HasSubstr("client-certificate"));
  EXPECT_THAT(message({.client_certificate_pem = one.certificate(), .client_key_pem = "x"}),
              HasSubstr("client-key"));
  EXPECT_THAT(message({.client_certificate_pem = one.certificate(), .client_key_pem = two.key()}),
              HasSubstr("does not belong"));
}

INSTANTIATE_TEST_SUITE_P(Both, TlsTransport,
                         testing::Values(HttpClientKind::kCpprest, HttpClientKind::kData),
                         HttpClientKindName);

}  // namespace
}  // namespace lambdadnn
