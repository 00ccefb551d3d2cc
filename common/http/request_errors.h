// SPDX-License-Identifier: Apache-2.0
// What went wrong with a request, for all transports in the same words. Private to this folder.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/http/http_transport.h"

namespace lambdadnn {

Status EndedByCaller(const HttpRequest& request);
// HttpRequest::total_seconds is over.
Status TookTooLong(const HttpRequest& request);
// Longer than HttpRequest::max_response_bytes.
Status AnswerTooLong(const HttpRequest& request);
Status AnswerCut(const HttpRequest& request, uint64_t got, uint64_t length);
// `origin`: scheme, host and port.
Status NoAnswer(const std::string& origin, const std::string& what);
Status NoAnswerInTime(const std::string& origin, const std::string& what);
// `error`: as ERR_get_error gives it.
Status TlsFailed(const std::string& origin, unsigned long error);

}  // namespace lambdadnn
