// SPDX-License-Identifier: Apache-2.0
// What the tests of HTTP do with each of the two transports.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/http/http_transport.h"

namespace lambdadnn {

enum class HttpClientKind { kCpprest, kData };

inline Result<std::unique_ptr<HttpTransport>> NewHttpClient(HttpClientKind kind,
                                                            const HttpTransportOptions& options) {
  return kind == HttpClientKind::kCpprest ? NewHttpTransport(options) : NewDataTransport(options);
}

inline std::string HttpClientKindName(const testing::TestParamInfo<HttpClientKind>& info) {
  return info.param == HttpClientKind::kCpprest ? "Cpprest" : "Data";
}

}  // namespace lambdadnn
