// SPDX-License-Identifier: Apache-2.0
// Maps errors of S3 servers to a Status: a code that says whether to retry, and a message that says
// what to do. Messages contain no secrets.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/http/http_date.h"
#include "common/http/http_transport.h"
#include "common/objectstore/s3_xml.h"

namespace lambdadnn {

struct S3Context {
  std::string method;
  std::string endpoint;
  std::string bucket;
  std::string region;
  std::string key;  // empty: a call to the bucket
  WallTime now;
};

// For an answer that is not 2xx.
Status S3Status(const HttpResponse& response, const S3Context& context);
// For an error inside an answer with `http_status`.
Status S3Status(const S3Error& error, int http_status, const S3Context& context);

}  // namespace lambdadnn
