// SPDX-License-Identifier: Apache-2.0
// Any text as a kubeconfig: it names one server with a scheme, or the sentence names the file.
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/base/files.h"
#include "operator/kube/kube_connection.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  static const std::string path = "/tmp/kubeconfig_fuzz." + std::to_string(getpid());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  LDNN_CHECK(WriteFileAtomically(path, text).ok(), "writing the input");
  const auto connection = LoadKubeconfig({path}, "");
  if (connection.ok()) {
    LDNN_CHECK(
        connection->server.starts_with("http://") || connection->server.starts_with("https://"),
        connection->server);
    LDNN_CHECK(!connection->server.ends_with("/"), connection->server);
    return 0;
  }
  LDNN_CHECK(connection.status().code() == StatusCode::kInvalidArgument ||
                 connection.status().code() == StatusCode::kNotFound ||
                 connection.status().code() == StatusCode::kFailedPrecondition,
             connection.status().ToString());
  LDNN_CHECK(connection.status().message().find(path) != std::string::npos,
             connection.status().message());
  return 0;
}
