// SPDX-License-Identifier: Apache-2.0
// A real S3 server on a free port of 127.0.0.1, with its data in a temporary folder, for as long as
// the object lives. It dies with the test, however that ends.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/objectstore/s3_client.h"

namespace lambdadnn {

struct S3TestServerOptions {
  std::string name = "minio";  // or "versitygw": scripts/test_servers.sh list
  std::string bucket = "lambdadnn-test";
  // PEM files to speak TLS with, and the authority that signed them (versitygw only).
  std::string certificate_file;
  std::string key_file;
  std::string ca_file;
};

class S3TestServer {
 public:
  // Returns once the server answers and the bucket is there. kFailedPrecondition, naming the
  // command, when the server is not built.
  static Result<std::unique_ptr<S3TestServer>> Start(const S3TestServerOptions& options);
  ~S3TestServer();
  S3TestServer(const S3TestServer&) = delete;
  S3TestServer& operator=(const S3TestServer&) = delete;

  // For the server's own bucket, with credentials.
  const S3Options& store_options() const { return store_options_; }
  int pid() const { return pid_; }

 private:
  S3TestServer() = default;

  S3Options store_options_;
  std::string log_file_;
  int port_lock_ = -1;
  int pid_ = -1;
};

// Whether the user has said (LAMBDADNN_WITHOUT_SERVERS=1) that tests of real servers are not to
// run where these are missing.
bool WithoutServers();

}  // namespace lambdadnn
