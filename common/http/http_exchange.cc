// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_exchange.h"

#include <array>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "common/base/percent_encoding.h"
#include "common/json/dump_json.h"

namespace lambdadnn {
namespace http = boost::beast::http;
namespace {

constexpr size_t kMaxTargetBytes = 4096;

// "a=1&b" -> {a: "1", b: ""}.
bool DecodeQuery(std::string_view text, std::map<std::string, std::string>* query) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    const std::optional<std::string> name = PercentDecode(item.substr(0, equals));
    const std::optional<std::string> value = PercentDecode(
        equals == std::string_view::npos ? std::string_view() : item.substr(equals + 1));
    if (!name || !value) return false;
    (*query)[*name] = *value;
  }
  return true;
}

}  // namespace

void ApplyLimits(const HttpServerLimits& limits, HttpRequestParser& parser) {
  parser.header_limit(limits.header_bytes);
  parser.body_limit(limits.body_bytes);
}

Result<HttpServerRequest> DecodeHead(const HttpRequestParser& parser) {
  const auto& message = parser.get();
  HttpServerRequest request;
  request.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  if (target.empty() || target.front() != '/' || target.size() > kMaxTargetBytes) {
    return InvalidArgumentError("the request's target must begin with '/' and have at most " +
                                std::to_string(kMaxTargetBytes) + " bytes");
  }
  const size_t question = target.find('?');
  const std::optional<std::string> path = PercentDecode(target.substr(0, question));
  if (!path || (question != std::string_view::npos &&
                !DecodeQuery(target.substr(question + 1), &request.query))) {
    return InvalidArgumentError("the request's target has a '%' without two hexadecimal digits");
  }
  request.path = *path;
  const auto length = parser.content_length();
  request.has_body = parser.chunked() || (length && *length > 0);
  const auto [begin, end] = message.equal_range(http::field::authorization);
  for (auto field = begin; field != end; ++field) {
    if (field != begin) return InvalidArgumentError("more than one Authorization header");
    request.authorization = std::string(field->value());
  }
  return request;
}

HttpServerReply ParseErrorReply(const boost::system::error_code& error) {
  HttpServerReply reply = ErrorReply(InvalidArgumentError("bad HTTP request: " + error.message()));
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    reply.status = 431;
  } else if (error == http::error::body_limit) {
    reply.status = 413;
  }
  return reply;
}

std::string EncodeReplyHead(const HttpServerReply& reply, bool keep_alive) {
  const auto status = http::int_to_status(static_cast<unsigned>(reply.status));
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " ";
  head += std::string(http::obsolete_reason(status));
  head += "\r\nContent-Type: " + reply.content_type + "\r\n";
  if (reply.stream) {
    head += "Transfer-Encoding: chunked\r\n";
  } else {
    head += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  }
  head += "Cache-Control: no-store\r\n";
  if (reply.status == 401) head += "WWW-Authenticate: Bearer\r\n";
  head += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return head;
}

std::string EncodeChunk(std::string_view piece) {
  std::array<char, 2 * sizeof(size_t)> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), piece.size(), 16);
  std::string chunk(digits.data(), end.ptr);
  chunk += "\r\n";
  chunk += piece;
  chunk += "\r\n";
  return chunk;
}

int HttpStatusOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
      return 400;
    case StatusCode::kUnauthenticated:
      return 401;
    case StatusCode::kPermissionDenied:
      return 403;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kAlreadyExists:
    case StatusCode::kAborted:
      return 409;
    case StatusCode::kFailedPrecondition:
      return 412;
    case StatusCode::kResourceExhausted:
      return 429;
    case StatusCode::kUnimplemented:
      return 501;
    case StatusCode::kUnavailable:
      return 503;
    case StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

HttpServerReply ErrorReply(const Status& status) {
  HttpServerReply reply;
  reply.status = HttpStatusOf(status.code());
  const nlohmann::json body = {
      {"error",
       {{"code", std::string(StatusCodeName(status.code()))}, {"message", status.message()}}}};
  // Messages may quote bytes of a bad request.
  reply.body = DumpJson(body) + "\n";
  return reply;
}

}  // namespace lambdadnn
