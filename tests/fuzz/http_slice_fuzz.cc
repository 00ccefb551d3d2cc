// SPDX-License-Identifier: Apache-2.0
// Any bytes on a function's port: the server's own parser, limits, authentication, routes and
// request decoding, without a socket. A first byte that is even gets the key and a POST in front,
// so that the fuzzer need not guess them to reach the decoder.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/http/http_server.h"
#include "common/protocol/slice_codec.h"
#include "tests/support/fake_slice_control.h"
#include "trainer_function/server/function_server.h"

using lambdadnn::FakeSliceControl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static lambdadnn::SystemClock clock;
  static lambdadnn::ThreadExecutor executor;
  static lambdadnn::SystemRandom random;
  static lambdadnn::Runtime runtime{clock, executor, random};
  FakeSliceControl slices;
  slices.lines = {"{}"};
  lambdadnn::MetricsRegistry metrics;
  lambdadnn::FunctionServer server(runtime, slices, metrics, "key");
  lambdadnn::HttpServerLimits limits;
  limits.body_bytes = 64 * 1024;

  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string bytes;
  if (data[0] % 2 == 0) {
    bytes = "POST /v1/slices HTTP/1.1\r\nAuthorization: Bearer key\r\nContent-Length: " +
            std::to_string(text.size()) + "\r\n\r\n";
  }
  bytes += text;
  const std::string answer = lambdadnn::ServeBytes(server, limits, bytes);
  // Nothing starts without the key, and every answer is HTTP.
  if (!slices.starts().empty() && bytes.find("Bearer key") == std::string::npos) std::abort();
  if (!answer.empty() && !answer.starts_with("HTTP/1.1 ")) std::abort();
  return 0;
}
