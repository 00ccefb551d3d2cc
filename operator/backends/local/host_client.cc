// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/local/host_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "common/base/clock.h"
#include "common/json/json_reader.h"

namespace lambdadnn {
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace net = boost::asio;
using boost::system::error_code;

namespace {

// More than a log of 1 MiB.
constexpr uint64_t kMaxAnswerBytes = 16 * 1024 * 1024;

// {"error": {"code": …, "message": …}} as a Status.
Status ErrorOf(unsigned http_status, const std::string& body) {
  const Result<Json> json = ParseJson(body);
  if (json.ok() && json->is_object() && json->contains("error")) {
    const Json& error = (*json)["error"];
    if (error.is_object() && error.contains("code") && error["code"].is_string() &&
        error.contains("message") && error["message"].is_string()) {
      const StatusCode code = StatusCodeFromName(error["code"].get<std::string>());
      return Status(code == StatusCode::kOk ? StatusCode::kUnknown : code,
                    error["message"].get<std::string>());
    }
  }
  return UnknownError("the function host answered HTTP status " + std::to_string(http_status));
}

}  // namespace

Result<std::string> HostClient::Call(const std::string& method, const std::string& target,
                                     const std::string& body) const {
  net::io_context io{1};
  beast::basic_stream<net::local::stream_protocol> stream(io);
  beast::flat_buffer buffer;
  http::request<http::string_body> request;
  request.method_string(method);
  request.target(target);
  request.version(11);
  request.set(http::field::host, "localhost");
  request.set(http::field::connection, "close");
  request.body() = body;
  request.prepare_payload();
  http::response_parser<http::string_body> answer;
  answer.body_limit(kMaxAnswerBytes);

  error_code error = net::error::would_block;
  stream.expires_after(FromSeconds(timeout_seconds_));
  // The socket is local: connecting answers at once.
  stream.socket().connect(net::local::stream_protocol::endpoint(socket_), error);
  if (!error) {
    http::async_write(stream, request, [&](error_code write_error, size_t) {
      error = write_error;
      if (error) return;
      http::async_read(stream, buffer, answer,
                       [&](error_code read_error, size_t) { error = read_error; });
    });
    io.run();
  }
  if (error) {
    return UnavailableError("asking the function host at " + socket_ + ": " + error.message());
  }
  const unsigned status = answer.get().result_int();
  if (status / 100 != 2) return ErrorOf(status, answer.get().body());
  return std::move(answer.get().body());
}

}  // namespace lambdadnn
