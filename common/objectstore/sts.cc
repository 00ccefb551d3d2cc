// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/sts.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/base/endpoint.h"
#include "common/base/percent_encoding.h"
#include "common/http/http_date.h"
#include "common/objectstore/s3_xml.h"
#include "common/objectstore/sigv4.h"

namespace lambdadnn {
namespace {

constexpr const char* kFormType = "application/x-www-form-urlencoded";
// As in S3Client: a request that is refused although times agree is refused for something else.
constexpr double kSameTimeSeconds = 120;
// Credentials with a session token of a few KiB, or a refusal.
constexpr uint64_t kMaxAnswerBytes = 64 << 10;

std::string Form(const AssumedRole& role, const std::string& role_arn) {
  std::string form = "Action=AssumeRole&DurationSeconds=" + std::to_string(role.duration_seconds) +
                     "&Policy=" + PercentEncode(role.policy);
  if (!role_arn.empty()) {
    form += "&RoleArn=" + PercentEncode(role_arn) +
            "&RoleSessionName=" + PercentEncode(role.session_name);
  }
  return form + "&Version=2011-06-15";
}

bool IsAws(const S3Options& options) {
  return EndpointOf(options).find(".amazonaws.com") != std::string::npos;
}

std::string StsEndpointOf(const S3Options& options) {
  if (!IsAws(options)) return EndpointOf(options);
  const std::string domain =
      options.region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com";
  return "https://sts." + options.region + domain;
}

Result<HttpResponse> Send(HttpTransport& transport, const S3Options& options,
                          const std::string& form, WallTime at) {
  LDNN_RETURN_IF_ERROR(ValidateRegion(options.region));
  const std::string endpoint = StsEndpointOf(options);
  LDNN_ASSIGN_OR_RETURN(const Endpoint server, ParseEndpoint(endpoint));
  const std::string timestamp = AmzTimestamp(at);
  SigV4Request signed_request{.method = "POST",
                              .path = "/",
                              .query = {},
                              .fields = {{"content-type", kFormType},
                                         {"host", server.HostField()},
                                         {"x-amz-date", timestamp}},
                              .payload_hash = Sha256Hex(form)};
  signed_request.fields.emplace_back("x-amz-content-sha256", signed_request.payload_hash);
  const StoreCredentials& own = options.credentials;
  if (!own.session_token.empty()) {
    signed_request.fields.emplace_back("x-amz-security-token", own.session_token);
  }
  HttpRequest request;
  request.method = "POST";
  request.url = endpoint + "/";
  request.fields = signed_request.fields;
  request.fields.emplace_back(
      "authorization", Authorization(signed_request, own.access_key, own.secret_key, options.region,
                                     timestamp, "sts"));
  request.body = {AsBytes(form)};
  request.max_response_bytes = request.max_error_bytes = kMaxAnswerBytes;
  request.total_seconds = options.limits.total_seconds;
  return transport.Send(request);
}

std::optional<WallTime> DateOf(const HttpResponse& response) {
  WallTime date;
  if (!ParseHttpDate(FindField(response.fields, "Date"), &date)) return std::nullopt;
  return date;
}

Status Refusal(const std::string& endpoint, const std::string& role_arn,
               const HttpResponse& response) {
  const Result<XmlElement> root = ParseXml(AsText(response.body));
  const S3Error error = ParseS3Error(AsText(response.body)).value_or(S3Error{});
  constexpr size_t kShown = 300;
  const std::string answer = "HTTP " + std::to_string(response.status) +
                             (error.code.empty() ? "" : " " + error.code) +
                             (error.message.empty() ? "" : ": " + error.message.substr(0, kShown));
  if (response.status == 401 || response.status == 403) {
    return PermissionDeniedError(
        endpoint + " refuses AssumeRole to these credentials (" + answer + "); " +
        (role_arn.empty() ? "credentials of a user may ask for it, those of a service account may "
                            "not"
                          : "allow them sts:AssumeRole of " + role_arn +
                                ", and let the role's trust policy name them"));
  }
  const bool busy = response.status == 429 || response.status == 408 ||
                    (response.status / 100 == 5 && response.status != 501);
  if (busy) return UnavailableError(endpoint + ": AssumeRole is not answered (" + answer + ")");
  // Only a Security Token Service wraps its errors.
  if (response.status == 400 && root.ok() && root->name == "ErrorResponse") {
    const std::string refused =
        role_arn.empty() ? "policy or duration" : "policy, duration or role (" + role_arn + ")";
    return InvalidArgumentError(endpoint + " refuses AssumeRole with this " + refused + " (" +
                                answer + ")");
  }
  return UnimplementedError(endpoint + " has no AssumeRole (" + answer + ")");
}

Result<TemporaryCredentials> ReadAnswer(const std::string& endpoint, const AssumedRole& role,
                                        const HttpResponse& response) {
  const Result<XmlElement> root = ParseXml(AsText(response.body));
  const XmlElement* const result = root.ok() ? root->Child("AssumeRoleResult") : nullptr;
  const XmlElement* const given = result != nullptr ? result->Child("Credentials") : nullptr;
  TemporaryCredentials answer;
  WallTime end;
  if (given != nullptr) {
    answer.credentials = {given->ChildText("AccessKeyId"), given->ChildText("SecretAccessKey"),
                          given->ChildText("SessionToken")};
  }
  const StoreCredentials& credentials = answer.credentials;
  if (credentials.access_key.empty() || credentials.secret_key.empty() ||
      credentials.session_token.empty()) {
    return UnimplementedError(endpoint + " answers AssumeRole without credentials");
  }
  answer.lifetime_seconds = role.duration_seconds;
  const std::optional<WallTime> date = DateOf(response);
  if (date.has_value() && ParseRfc3339(given->ChildText("Expiration"), &end)) {
    answer.lifetime_seconds = std::min(answer.lifetime_seconds, ToSeconds(end - *date));
  }
  return answer;
}

}  // namespace

Result<TemporaryCredentials> AssumeRole(HttpTransport& transport, Clock& clock,
                                        const S3Options& options, const AssumedRole& role) {
  const std::string endpoint = StsEndpointOf(options);
  const std::string& role_arn = options.credentials.role_arn;
  if (IsAws(options) && role_arn.empty()) {
    return UnimplementedError(
        "AWS gives credentials for less through a role, and none is named; add the ARN of one that "
        "these credentials may assume, as key roleArn of their Secret");
  }
  const std::string form = Form(role, role_arn);
  const WallTime at = clock.Wall();
  LDNN_ASSIGN_OR_RETURN(HttpResponse response, Send(transport, options, form, at));
  if (response.status / 100 != 2) {
    const std::optional<WallTime> date = DateOf(response);
    const bool skewed = date.has_value() && std::abs(ToSeconds(*date - at)) >= kSameTimeSeconds;
    if (skewed) {
      LDNN_ASSIGN_OR_RETURN(response, Send(transport, options, form, *date));
    }
  }
  if (response.status / 100 != 2) return Refusal(endpoint, role_arn, response);
  return ReadAnswer(endpoint, role, response);
}

}  // namespace lambdadnn
