// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/s3_client.h"

#include <algorithm>
#include <cmath>

#include "common/base/percent_encoding.h"
#include "common/objectstore/s3_errors.h"

namespace lambdadnn {
namespace {

// S3 allows 15 minutes; a request that is refused although times agree is refused for something
// else.
constexpr double kSameTimeSeconds = 120;

}  // namespace

std::string EndpointOf(const S3Options& options) {
  std::string endpoint = options.endpoint;
  if (endpoint.empty()) endpoint = "https://s3." + options.region + ".amazonaws.com";
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint;
}

Status ValidateRegion(const std::string& region) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  if (!region.empty() && std::all_of(region.begin(), region.end(), letter)) return OkStatus();
  return InvalidArgumentError("S3 region '" + region +
                              "': name one of letters, digits and '-'; 'us-east-1' suits most "
                              "servers");
}

Status S3Options::Validate() const {
  const auto bad = [](const std::string& field, const std::string& value, const std::string& what) {
    return InvalidArgumentError("S3 " + field + " '" + value + "': " + what);
  };
  const Result<Endpoint> at = ParseEndpoint(EndpointOf(*this));
  if (!at.ok() || at->scheme.empty()) {
    return bad("endpoint", endpoint, "write http://host:port or https://host:port");
  }
  if (!at->path.empty() || !at->user_info.empty()) {
    return bad("endpoint", endpoint, "write http[s]://host:port without a path");
  }
  const auto bucket_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  if (bucket.size() < 3 || bucket.size() > 255 ||
      !std::all_of(bucket.begin(), bucket.end(), bucket_letter)) {
    return bad("bucket", bucket, "a bucket's name has 3 to 63 letters, digits, '-' and '.'");
  }
  LDNN_RETURN_IF_ERROR(ValidateRegion(region));
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    return UnauthenticatedError(
        "S3 bucket '" + bucket +
        "' needs credentials; set LAMBDADNN_S3_ACCESS_KEY_ID and LAMBDADNN_S3_SECRET_ACCESS_KEY "
        "(or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), or put them into the files accessKeyId "
        "and secretAccessKey of the folder LAMBDADNN_S3_CREDENTIALS_DIR");
  }
  constexpr uint64_t kMinPart = uint64_t{5} << 20;
  constexpr uint64_t kMaxPart = uint64_t{5} << 30;
  if (part_bytes < kMinPart || part_bytes > kMaxPart) {
    return bad("part size", std::to_string(part_bytes), "choose 5 MiB to 5 GiB");
  }
  return limits.Validate();
}

Status S3Limits::Validate() const {
  const bool some = error_bytes > 0 && control_bytes > 0 && list_bytes > 0 && object_bytes > 0;
  if (some && total_seconds > 0 && lowest_bytes_per_second > 0) return OkStatus();
  return InvalidArgumentError("S3 limits of answers: each must be larger than 0");
}

S3Client::S3Client(HttpTransport& transport, Clock& clock, S3Options options)
    : endpoint_(EndpointOf(options)),
      at_(ParseEndpoint(endpoint_).value()),
      transport_(transport),
      clock_(clock),
      options_(std::move(options)) {
  const Status valid = options_.Validate();
  LDNN_CHECK(valid.ok(), valid.message());
}

std::string S3Client::Name() const { return endpoint_ + "/" + options_.bucket; }

WallTime S3Client::ServerTime() const {
  return clock_.Wall() + std::chrono::nanoseconds(ahead_ns_.load());
}

bool S3Client::LearnTime(const HttpResponse& response, WallTime signed_at) {
  WallTime theirs;
  if (!ParseHttpDate(FindField(response.fields, "Date"), &theirs)) return false;
  if (std::abs(ToSeconds(theirs - signed_at)) < kSameTimeSeconds) return false;
  ahead_ns_ = (theirs - clock_.Wall()).count();
  return true;
}

Result<HttpResponse> S3Client::Send(const S3Call& call) {
  const WallTime at = ServerTime();
  LDNN_ASSIGN_OR_RETURN(HttpResponse response, SendSigned(call, at));
  // A refused HEAD has no error code, and servers use different codes: so the times are compared.
  if (response.status != 403 || !LearnTime(response, at)) return response;
  return SendSigned(call, ServerTime());
}

Result<HttpResponse> S3Client::SendSigned(const S3Call& call, WallTime at) {
  const bool hashed = options_.sign_payload && at_.scheme != "https";
  const bool unsigned_body = !hashed && !call.body.empty();
  std::string host = at_.HostField();
  std::string path = "/";
  if (options_.path_style) {
    path += options_.bucket + (call.key.empty() ? "" : "/");
  } else {
    host = options_.bucket + "." + host;
  }
  path += PercentEncode(call.key, "/");
  const std::string timestamp = AmzTimestamp(at);

  SigV4Request signed_request{
      .method = call.method,
      .path = path,
      .query = call.query,
      .fields = call.fields,
      .payload_hash = unsigned_body ? std::string(kUnsignedPayload) : Sha256Hex(call.body)};
  HttpFields& fields = signed_request.fields;
  fields.emplace_back("host", host);
  fields.emplace_back("x-amz-content-sha256", signed_request.payload_hash);
  fields.emplace_back("x-amz-date", timestamp);
  const StoreCredentials& credentials = options_.credentials;
  if (!credentials.session_token.empty()) {
    fields.emplace_back("x-amz-security-token", credentials.session_token);
  }
  const std::string authorization = Authorization(
      signed_request, credentials.access_key, credentials.secret_key, options_.region, timestamp);

  HttpRequest request;
  request.method = call.method;
  request.url = at_.scheme + "://" + host + path;
  if (!call.query.empty()) request.url += "?" + CanonicalQuery(call.query);
  request.fields = std::move(fields);
  request.fields.emplace_back("authorization", authorization);
  request.body = call.body;
  request.repeatable = call.repeatable;
  const S3Limits& limits = options_.limits;
  request.max_response_bytes = call.answer_bytes.value_or(limits.control_bytes);
  request.max_error_bytes = limits.error_bytes;
  request.total_seconds = limits.total_seconds;
  request.lowest_bytes_per_second = limits.lowest_bytes_per_second;
  Result<HttpResponse> response = transport_.Send(request);
  if (response.status().code() != StatusCode::kResourceExhausted) return response;
  return TooLong(call, request.max_response_bytes);
}

Status S3Client::TooLong(const S3Call& call, uint64_t limit) const {
  const std::string longer = " is longer than the " + std::to_string(limit) + " bytes that ";
  if (call.method == "GET" && !call.key.empty()) {
    return ResourceExhaustedError("what " + Name() + " answers for object '" +
                                  std::string(call.key) + "'" + longer +
                                  "are read of it; check what wrote it");
  }
  return ResourceExhaustedError("the answer of " + Name() + " to a " + call.method + longer +
                                "S3 needs for it; name the endpoint of an S3 server");
}

Result<HttpResponse> S3Client::Expect2xx(const S3Call& call) {
  LDNN_ASSIGN_OR_RETURN(HttpResponse response, Send(call));
  if (response.status / 100 != 2) return ErrorFrom(call, response);
  return response;
}

Status S3Client::ErrorFrom(const S3Call& call, const HttpResponse& response) {
  return S3Status(response, {.method = call.method,
                             .endpoint = endpoint_,
                             .bucket = options_.bucket,
                             .region = options_.region,
                             .key = std::string(call.key),
                             .now = clock_.Wall()});
}

}  // namespace lambdadnn
