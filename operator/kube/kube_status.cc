// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/kube_status.h"

#include <algorithm>

#include "common/base/text.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

constexpr size_t kMaxMessageBytes = 4096;
constexpr double kMaxWaitSeconds = 60;

// The object of a refusal; null when the body is something else (a proxy's page, nothing).
Json StatusObject(const HttpResponse& response) {
  Result<Json> json = ParseJson(AsText(response.body));
  if (!json.ok() || TextField(*json, "kind") != "Status") return nullptr;
  return std::move(*json);
}

Json Details(const Json& object) {
  const auto found = object.is_object() ? object.find("details") : object.end();
  return object.is_object() && found != object.end() ? *found : Json::object();
}

// The server repeats causes inside message for 422; elsewhere they are news.
std::string MessageOf(const Json& object, int http_status) {
  std::string message = TextField(object, "message");
  if (message.empty()) message = "HTTP status " + std::to_string(http_status);
  const Json details = Details(object);
  if (details.is_object() && details.contains("causes") && details["causes"].is_array()) {
    for (const Json& cause : details["causes"]) {
      const std::string text = TextField(cause, "message");
      if (text.empty() || message.find(text) != std::string::npos) continue;
      const std::string field = TextField(cause, "field");
      message += "; " + (field.empty() ? text : field + ": " + text);
    }
  }
  if (message.size() > kMaxMessageBytes) message.resize(kMaxMessageBytes);
  return message;
}

StatusCode CodeOf(int http_status, const std::string& reason) {
  switch (http_status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return StatusCode::kInvalidArgument;
    case 401:
      return StatusCode::kUnauthenticated;
    case 403:
      return StatusCode::kPermissionDenied;
    case 404:
      return StatusCode::kNotFound;
    case 405:
      return StatusCode::kUnimplemented;
    case 409:
      return reason == "AlreadyExists" ? StatusCode::kAlreadyExists : StatusCode::kAborted;
    case 410:
      return StatusCode::kOutOfRange;
    case 408:
    case 429:
      return StatusCode::kUnavailable;
    default:
      return http_status >= 500 ? StatusCode::kUnavailable : StatusCode::kUnknown;
  }
}

}  // namespace

Status StatusOfObject(std::string_view what, const Json& object, int http_status) {
  const std::string reason = TextField(object, "reason");
  if (object.is_object()) {
    const auto code = object.find("code");
    if (code != object.end() && code->is_number_integer()) {
      const auto number = code->get<int64_t>();
      if (number >= 300 && number < 600) http_status = static_cast<int>(number);
    }
  }
  if (reason == "Expired" || reason == "Gone") http_status = 410;
  return Status(CodeOf(http_status, reason), MessageOf(object, http_status)).WithContext(what);
}

Status StatusOfAnswer(std::string_view what, const HttpResponse& response) {
  const Json object = StatusObject(response);
  Status status = StatusOfObject(what, object, response.status);
  if (!object.is_null()) return status;
  // Not an answer of the API server: show the beginning of it.
  std::string text(AsText(response.body).substr(0, 200));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text.empty() ? status : Status(status.code(), status.message() + ": " + text);
}

std::optional<Duration> RetryAfter(const HttpResponse& response) {
  std::optional<double> seconds = ParseDouble(FindField(response.fields, "Retry-After"));
  if (!seconds) {
    const Json details = Details(StatusObject(response));
    const auto found = details.is_object() ? details.find("retryAfterSeconds") : details.end();
    if (details.is_object() && found != details.end() && found->is_number()) {
      seconds = found->get<double>();
    }
  }
  if (!seconds || !(*seconds >= 0)) return std::nullopt;
  return FromSeconds(std::min(*seconds, kMaxWaitSeconds));
}

}  // namespace lambdadnn
