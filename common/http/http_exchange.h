// SPDX-License-Identifier: Apache-2.0
// The parts of HTTP that http_server.cc and ServeBytes() share: from a parsed message to a
// request, from a reply to bytes. Private to this folder: included by .cc files only.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/http/http_server.h"

namespace lambdadnn {

using HttpRequestParser = boost::beast::http::request_parser<boost::beast::http::string_body>;

void ApplyLimits(const HttpServerLimits& limits, HttpRequestParser& parser);
// kInvalidArgument: a target that is not "/path?query", more than one Authorization header.
Result<HttpServerRequest> DecodeHead(const HttpRequestParser& parser);
// What is answered when reading failed: 431, 413 or 400.
HttpServerReply ParseErrorReply(const boost::system::error_code& error);

// Status line and header fields; "Transfer-Encoding: chunked" for a streamed reply.
std::string EncodeReplyHead(const HttpServerReply& reply, bool keep_alive);
std::string EncodeChunk(std::string_view piece);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace lambdadnn
