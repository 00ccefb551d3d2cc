// SPDX-License-Identifier: Apache-2.0
// Any body under any HTTP status: a refusal never reads as success, asks to wait a minute at most,
// and its sentence begins with what was asked for. The first two bytes are the HTTP status.
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "operator/kube/kube_status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  if (size < 2) return 0;
  HttpResponse response;
  response.status = 300 + (data[0] * 256 + data[1]) % 300;
  const auto body = ByteView(reinterpret_cast<const std::byte*>(data), size).subspan(2);
  response.body.assign(body.begin(), body.end());
  const Status status = StatusOfAnswer("get x", response);
  LDNN_CHECK(!status.ok(), "a refusal is no success");
  LDNN_CHECK(status.message().find("get x") != std::string::npos, status.message());
  const auto wait = RetryAfter(response);
  LDNN_CHECK(!wait || (*wait >= Duration::zero() && *wait <= std::chrono::minutes(1)),
             "how long to wait");
  return 0;
}
