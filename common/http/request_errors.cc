// SPDX-License-Identifier: Apache-2.0
#include "common/http/request_errors.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

std::string Name(const HttpRequest& request) { return request.method + " " + request.url; }

}  // namespace

Status EndedByCaller(const HttpRequest& request) {
  return CancelledError(Name(request) + " was ended by its caller");
}

Status TookTooLong(const HttpRequest& request) {
  std::string within = FormatDouble(request.total_seconds) + " s";
  if (request.lowest_bytes_per_second > 0) {
    within +=
        " and a second more for each " + std::to_string(request.lowest_bytes_per_second) + " bytes";
  }
  return UnavailableError("no complete answer to " + Name(request) + " within " + within);
}

Status AnswerTooLong(const HttpRequest& request) {
  return ResourceExhaustedError("the answer to " + Name(request) + " is longer than " +
                                std::to_string(request.max_response_bytes) + " bytes");
}

Status AnswerCut(const HttpRequest& request, uint64_t got, uint64_t length) {
  return UnavailableError("the answer to " + Name(request) + " was cut after " +
                          std::to_string(got) + " of " + std::to_string(length) + " bytes");
}

Status NoAnswer(const std::string& origin, const std::string& what) {
  return UnavailableError("no answer from " + origin + ": " + what +
                          "; is the server running and the endpoint right?");
}

Status NoAnswerInTime(const std::string& origin, const std::string& what) {
  return UnavailableError("no answer from " + origin + " in time (" + what + ")");
}

Status TlsFailed(const std::string& origin, unsigned long error) {
  const int reason = ERR_GET_REASON(error);
  const char* const text = ERR_reason_error_string(error);
  const std::string what = "TLS with " + origin + " failed: " + (text == nullptr ? "?" : text);
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return FailedPreconditionError(
        what +
        "; name a file (PEM) with the certificate authority that signed the server's "
        "certificate, and the host as it stands in that certificate");
  }
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST) {
    return FailedPreconditionError(
        what + "; the server does not speak TLS on this port, write http:// or another port");
  }
  return UnavailableError(what);
}

}  // namespace lambdadnn
