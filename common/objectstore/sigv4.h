// SPDX-License-Identifier: Apache-2.0
// AWS Signature Version 4 for S3, and for STS ("Authenticating Requests: Using the Authorization
// Header" in the S3 API reference), as separate steps, and the digests that S3 requires. Pure
// functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/http/http_transport.h"

namespace lambdadnn {

using QueryParameters = std::vector<std::pair<std::string, std::string>>;  // not encoded

// What of a request is signed.
struct SigV4Request {
  std::string method;
  std::string path;  // as in the request line, encoded by PercentEncode(path, "/"), begins with '/'
  QueryParameters query;
  HttpFields fields;  // all that are signed; "host" and "x-amz-date" are among them
  std::string payload_hash;
};

// For payloads that TLS protects.
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

// "a=1&b=", sorted and encoded as it is signed; the same text belongs into the URL.
std::string CanonicalQuery(QueryParameters query);
// Names in lower case, sorted, joined by ';'.
std::string SignedFieldNames(const HttpFields& fields);
std::string CanonicalRequest(const SigV4Request& request);
// "20130524T000000Z".
std::string AmzTimestamp(WallTime time);
// The instant of an AmzTimestamp; false when it is none.
bool ParseAmzTimestamp(std::string_view text, WallTime* time);
// `timestamp` is AmzTimestamp's.
std::string StringToSign(std::string_view timestamp, std::string_view region,
                         std::string_view canonical_request, std::string_view service = "s3");
std::string Signature(std::string_view secret_key, std::string_view timestamp,
                      std::string_view region, std::string_view string_to_sign,
                      std::string_view service = "s3");
// The value of the Authorization field.
std::string Authorization(const SigV4Request& request, std::string_view access_key,
                          std::string_view secret_key, std::string_view region,
                          std::string_view timestamp, std::string_view service = "s3");

// Lower-case hexadecimal SHA-256 of the concatenation.
std::string Sha256Hex(std::span<const ByteView> parts);
std::string Sha256Hex(std::string_view text);
std::string Md5Base64(std::string_view text);

}  // namespace lambdadnn
