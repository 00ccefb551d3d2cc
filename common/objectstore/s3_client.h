// SPDX-License-Identifier: Apache-2.0
// One bucket of an S3 endpoint: turns calls into signed requests, and what went wrong into a Status
// with the next step in its message. Requests are signed with the time of `clock`; a server that
// refuses them and has another time is asked again with its own. Thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/store_credentials.h"
#include "common/http/http_transport.h"
#include "common/objectstore/sigv4.h"

namespace lambdadnn {

struct S3Options {
  std::string endpoint;  // "http[s]://host[:port]"; empty = AWS's of the region
  std::string bucket;
  std::string region = "us-east-1";
  bool path_style = true;  // endpoint/bucket/key instead of bucket.endpoint/key
  StoreCredentials credentials;
  // Larger objects go up in parts of this size. S3 wants 5 MiB to 5 GiB.
  uint64_t part_bytes = uint64_t{32} << 20;

  // kInvalidArgument naming the field.
  Status Validate() const;
};

// Where requests go, without trailing '/'.
std::string EndpointOf(const S3Options& options);
// "host" or "host:port" of such an endpoint, without the scheme's own port, as the Host field has
// it.
std::string AuthorityOf(const std::string& endpoint);

// A request to the bucket or to one of its objects.
struct S3Call {
  std::string method;
  std::string_view key = {};  // empty: the bucket itself
  QueryParameters query = {};
  HttpFields fields = {};
  std::vector<ByteView> body = {};
  bool repeatable = true;
};

class S3Client {
 public:
  // `transport` and `clock` outlive this; `options` are valid.
  S3Client(HttpTransport& transport, Clock& clock, S3Options options);

  // The answer, whatever its status. An error says that there was none (HttpTransport).
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
  WallTime ServerTime() const;
  // Whether the server's time is another one than that which the refused request was signed with.
  bool LearnTime(const HttpResponse& response, WallTime signed_at);

  const std::string endpoint_;  // without trailing '/'
  HttpTransport& transport_;
  Clock& clock_;
  const S3Options options_;
  std::atomic<int64_t> ahead_ns_{0};  // the server's clock before ours, once it mattered
};

}  // namespace lambdadnn
