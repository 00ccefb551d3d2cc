// SPDX-License-Identifier: Apache-2.0
// Maps an API server's error, an HTTP status with a meta/v1 Status object, to our Status, with the
// server's message.
#pragma once

#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/http/http_transport.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

// `what` describes the request for people ("create secrets team-a/x"). Never OK for a status >=
// 300. Codes as kube_client.h says; 401 is kUnauthenticated, 429 and 5xx kUnavailable.
Status StatusOfAnswer(std::string_view what, const HttpResponse& response);
// The same for the Status object of a watch's ERROR event.
Status StatusOfObject(std::string_view what, const Json& object, int http_status);

// How long the server asks to wait: Retry-After in seconds, or the Status object's
// retryAfterSeconds; nullopt when it asks nothing. At most a minute.
std::optional<Duration> RetryAfter(const HttpResponse& response);

}  // namespace lambdadnn
