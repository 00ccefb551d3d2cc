// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/s3_errors.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lambdadnn {
namespace {

template <size_t N>
bool IsOneOf(std::string_view code, const std::array<std::string_view, N>& codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

constexpr std::array<std::string_view, 15> kTransient = {
    "SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Throttling",
    "ThrottlingException", "RequestLimitExceeded", "BandwidthLimitExceeded", "OperationAborted",
    "ConditionalRequestConflict", "XMinioServerNotInitialized", "SlowDownRead", "SlowDownWrite",
    // Of an upload that was completed or aborted meanwhile: the whole Put starts anew.
    "NoSuchUpload",
    // versitygw says this as well while it removes a folder that has just become empty.
    "ExistingObjectIsDirectory"};
constexpr std::array<std::string_view, 7> kWrongCredentials = {
    "XAdminUserNotFound", "InvalidAccessKeyId",   "SignatureDoesNotMatch", "InvalidToken",
    "ExpiredToken",       "TokenRefreshRequired", "InvalidClientTokenId"};
constexpr std::array<std::string_view, 5> kFull = {"XMinioStorageFull", "QuotaExceeded",
                                                   "XMinioAdminBucketQuotaExceeded", "StorageFull",
                                                   "InsufficientStorage"};
constexpr std::array<std::string_view, 4> kOtherRegion = {"PermanentRedirect", "TemporaryRedirect",
                                                          "AuthorizationHeaderMalformed",
                                                          "IllegalLocationConstraintException"};

std::string Subject(const S3Context& context) {
  const std::string bucket = "bucket '" + context.bucket + "' at " + context.endpoint;
  return context.key.empty() ? bucket : "object '" + context.key + "' of " + bucket;
}

std::string Quoted(const S3Error& error, int http_status) {
  std::string text = "HTTP " + std::to_string(http_status);
  if (!error.code.empty()) text += " " + error.code;
  constexpr size_t kShown = 300;
  if (!error.message.empty()) text += ": " + error.message.substr(0, kShown);
  return text;
}

Status WrongCredentials(const S3Error& error, const S3Context& context, const std::string& answer) {
  std::string what = "the access key is unknown there";
  if (error.code == "SignatureDoesNotMatch") what = "the secret key does not fit the access key";
  if (error.code == "ExpiredToken" || error.code == "TokenRefreshRequired") {
    what = "the temporary credentials have expired";
  }
  if (error.code == "InvalidToken") what = "the session token is not valid";
  return UnauthenticatedError(context.endpoint + " refuses the credentials: " + what +
                              "; correct the access key, secret key or session token (" + answer +
                              ")");
}

Status SkewedClock(const S3Context& context, const HttpFields& fields) {
  std::string apart = "too much";
  WallTime theirs;
  if (ParseHttpDate(FindField(fields, "Date"), &theirs)) {
    const double seconds = std::abs(ToSeconds(context.now - theirs));
    apart = std::to_string(static_cast<long long>(std::round(seconds))) + " s";
  }
  return FailedPreconditionError("the clocks of this machine and of " + context.endpoint +
                                 " differ by " + apart +
                                 "; set both by NTP (S3 allows 15 minutes)");
}

Status Classify(const S3Error& error, int http_status, const S3Context& context,
                const HttpFields& fields) {
  const std::string answer = Quoted(error, http_status);
  const std::string& code = error.code;
  if (code == "NoSuchBucket") {
    return NotFoundError("there is no bucket '" + context.bucket + "' at " + context.endpoint +
                         "; create it or correct the store's URI");
  }
  if (code == "RequestTimeTooSkewed") return SkewedClock(context, fields);
  if (IsOneOf(code, kWrongCredentials)) return WrongCredentials(error, context, answer);
  if (IsOneOf(code, kTransient)) {
    return UnavailableError(Subject(context) + ": the store is busy (" + answer + ")");
  }
  if (IsOneOf(code, kFull) || http_status == 507) {
    return ResourceExhaustedError(Subject(context) + ": the store is full (" + answer +
                                  "); free some space or raise the quota");
  }
  if (IsOneOf(code, kOtherRegion) || http_status / 100 == 3) {
    return FailedPreconditionError(
        Subject(context) + " is not in region '" + context.region + "' (" + answer + ")" +
        (error.region.empty() ? "; set the bucket's region and endpoint"
                              : "; set the region to '" + error.region + "'"));
  }
  if (code == "PreconditionFailed" || http_status == 412) {
    return AlreadyExistsError(Subject(context) + " is already there");
  }
  if (http_status == 404) {
    const bool usual = code.empty() || code == "NoSuchKey";
    return NotFoundError("there is no " + Subject(context) + (usual ? "" : " (" + answer + ")"));
  }
  if (http_status == 401) return WrongCredentials(error, context, answer);
  if (http_status == 403) {
    return PermissionDeniedError(context.method + " of " + Subject(context) + " is not allowed (" +
                                 answer + "); give these credentials the right to do it");
  }
  if (http_status == 501 || http_status == 405) {
    return UnimplementedError(context.method + " of " + Subject(context) +
                              ": the server cannot do that (" + answer + ")");
  }
  if (http_status == 429 || http_status == 408 || http_status / 100 == 5) {
    return UnavailableError(Subject(context) + ": the store is busy (" + answer + ")");
  }
  if (http_status == 409) {
    return FailedPreconditionError(context.method + " of " + Subject(context) +
                                   " conflicts with what is there (" + answer + ")");
  }
  return InvalidArgumentError(context.method + " of " + Subject(context) + " was refused (" +
                              answer + ")");
}

}  // namespace

Status S3Status(const HttpResponse& response, const S3Context& context) {
  const S3Error error = ParseS3Error(AsText(response.body)).value_or(S3Error{});
  return Classify(error, response.status, context, response.fields);
}

Status S3Status(const S3Error& error, int http_status, const S3Context& context) {
  return Classify(error, http_status, context, {});
}

}  // namespace lambdadnn
