// SPDX-License-Identifier: Apache-2.0
// Opens an ObjectStore from its description (URI, endpoint, credentials), for the CLI, the operator
// and the functions.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/runtime.h"
#include "common/base/store_credentials.h"
#include "common/objectstore/assumed_role.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {

class HttpCancellation;

struct StoreConfig {
  // "file:///absolute/dir", "s3://bucket[/prefix]", or "memory:" (one per process, for tests).
  // Taken as it is written: '%' stands for itself.
  std::string uri;
  std::string endpoint;  // "https://host:port"; empty = AWS's for the region
  std::string region = "us-east-1";
  bool path_style = true;
  bool sign_payload = true;  // over plain HTTP; S3Options
  std::string ca_file;       // PEM; with both empty the system's
  std::string ca_pem;
  StoreCredentials credentials;
  double request_timeout_seconds = 30;
  double retry_budget_seconds = 60;  // that a call of OpenStore's store may take in all
  // Waits between its attempts (RetryOptions); null = on the runtime's clock.
  std::function<Status(Instant)> sleep_until = nullptr;
  // Ends requests to a store that is reached over HTTP: those under way and those to come are
  // kCancelled. Null = they cannot be cancelled.
  std::shared_ptr<HttpCancellation> cancellation = nullptr;
};

// The store with keys relative to the URI's prefix, one attempt a call: for owners who repeat calls
// in their own way. kInvalidArgument for a URI that is none of the above; nothing is contacted yet.
Result<std::unique_ptr<ObjectStore>> OpenPlainStore(const StoreConfig& config, Runtime& runtime);

// The same with retries (RetryingObjectStore).
Result<std::unique_ptr<ObjectStore>> OpenStore(const StoreConfig& config, Runtime& runtime);

// Credentials for less than config's, of its store's Security Token Service (sts.h); kUnimplemented
// for stores that are no S3 servers.
Result<TemporaryCredentials> AssumeStoreRole(const StoreConfig& config, Runtime& runtime,
                                             const AssumedRole& role);

// Credentials from the files accessKeyId, secretAccessKey and, if there, sessionToken of the folder
// LAMBDADNN_S3_CREDENTIALS_DIR (a mounted Secret, read anew each time, so that they can be rotated
// under a running process), else from LAMBDADNN_S3_ACCESS_KEY_ID / _SECRET_ACCESS_KEY /
// _SESSION_TOKEN, else AWS_*; their role from LAMBDADNN_S3_ROLE_ARN. None
// where the folder has no such files.
StoreCredentials CredentialsFromEnvironment();

}  // namespace lambdadnn
