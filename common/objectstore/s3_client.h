// SPDX-License-Identifier: Apache-2.0
// One bucket of an S3 endpoint: turns calls into signed requests, and errors into a Status whose
// message has the next step. Requests are signed with the time of `clock`; when the server refuses
// one and its Date differs, it is sent again with the server's time. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/endpoint.h"
#include "common/base/store_credentials.h"
#include "common/http/http_transport.h"
#include "common/objectstore/sigv4.h"

namespace lambdadnn {

// Limits of one answer in bytes and seconds. Users name the stores, and may name a hostile one: an
// endless answer must harm only that user's job.
struct S3Limits {
  // An error is a short XML document; more is not read.
  uint64_t error_bytes = uint64_t{64} << 10;
  // Answers of HEAD, PUT, DELETE and of multipart uploads: nothing, or a few lines of XML.
  uint64_t control_bytes = uint64_t{64} << 10;
  // A page of a listing and the answer of a batch of deletions: 1,000 keys of 1,024 bytes, each
  // byte written as "%xx", and 500 bytes around each.
  uint64_t list_bytes = uint64_t{4} << 20;
  // Of a Get that names no range. The largest part that a function writes is smaller.
  uint64_t object_bytes = uint64_t{4} << 30;
  // Timeout of an answer without a body; enough for a server under load.
  double total_seconds = 60;
  // Bodies add their length at this rate to it: half a megabit a second is the slowest usable link.
  uint64_t lowest_bytes_per_second = uint64_t{64} << 10;

  // kInvalidArgument for a limit that lets nothing pass.
  Status Validate() const;
};

struct S3Options {
  std::string endpoint;  // "http[s]://host[:port]"; empty = AWS's of the region
  std::string bucket;
  std::string region = "us-east-1";
  bool path_style = true;  // endpoint/bucket/key instead of bucket.endpoint/key
  // Over plain HTTP, bodies of PUTs are hashed (SHA-256) and the hash is signed, so that nobody on
  // the way can change them. Over TLS nobody can, and they never are.
  bool sign_payload = true;
  StoreCredentials credentials;
  // Larger objects go up in parts of this size. S3 wants 5 MiB to 5 GiB.
  uint64_t part_bytes = uint64_t{32} << 20;
  S3Limits limits = {};

  // kInvalidArgument naming the field.
  Status Validate() const;
};

// kInvalidArgument unless it is a region's name: it becomes part of the name of a host.
Status ValidateRegion(const std::string& region);

// Where requests go, without trailing '/'.
std::string EndpointOf(const S3Options& options);

// A request to the bucket or to one of its objects.
struct S3Call {
  std::string method;
  std::string_view key = {};  // empty: the bucket itself
  QueryParameters query = {};
  HttpFields fields = {};
  std::vector<ByteView> body = {};
  bool repeatable = true;
  // The longest body that the answer may have, if it is none of a control request.
  std::optional<uint64_t> answer_bytes = {};
};

class S3Client {
 public:
  // `transport` and `clock` outlive this; `options` are valid.
  S3Client(HttpTransport& transport, Clock& clock, S3Options options);

  // The answer, whatever its status. An error says that there was none (HttpTransport), or that it
  // was longer than it may be (kResourceExhausted).
  Result<HttpResponse> Send(const S3Call& call);
  // The answer if its status is 2xx and its body is no error, else what it means for the caller.
  Result<HttpResponse> Expect2xx(const S3Call& call);
  // What an answer that is not 2xx means.
  Status ErrorFrom(const S3Call& call, const HttpResponse& response);

  const S3Options& options() const { return options_; }
  // "endpoint/bucket" as messages name it.
  std::string Name() const;

 private:
  Result<HttpResponse> SendSigned(const S3Call& call, WallTime at);
  Status TooLong(const S3Call& call, uint64_t limit) const;
  WallTime ServerTime() const;
  // Whether the server's time is another one than that which the refused request was signed with.
  bool LearnTime(const HttpResponse& response, WallTime signed_at);

  const std::string endpoint_;  // without trailing '/'
  const Endpoint at_;           // the same, read
  HttpTransport& transport_;
  Clock& clock_;
  const S3Options options_;
  std::atomic<int64_t> ahead_ns_{0};  // the server's clock before ours, once it mattered
};

}  // namespace lambdadnn
