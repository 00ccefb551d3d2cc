// SPDX-License-Identifier: Apache-2.0
#include "operator/server/operator_http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string Ask(OperatorHttp& pages, const std::string& head) {
  return ServeBytes(pages, HttpServerLimits{}, head + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

TEST(OperatorHttp, ServesWhatWasAddedAndNothingElse) {
  OperatorHttp pages;
  bool ready = false;
  pages.Add("/readyz", [&](const HttpServerRequest&) {
    return ready ? TextReply(200, "ok") : TextReply(503, "jobs are not listed yet");
  });
  pages.Add("/debug/",
            [](const HttpServerRequest& request) { return TextReply(200, request.path); });
  EXPECT_THAT(Ask(pages, "GET /readyz"), StartsWith("HTTP/1.1 503"));
  ready = true;
  EXPECT_THAT(Ask(pages, "GET /readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(pages, "GET /debug/jobs/a/b"), HasSubstr("/debug/jobs/a/b"));
  EXPECT_THAT(Ask(pages, "GET /"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask(pages, "GET /readyz/x"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask(pages, "POST /readyz"), StartsWith("HTTP/1.1 405"));
}

}  // namespace
}  // namespace lambdadnn
