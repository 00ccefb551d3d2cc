// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/store_access.h"

#include "common/base/files.h"
#include "common/objectstore/open_store.h"

namespace lambdadnn {

// What functions need to reach the store as this process does.
std::map<std::string, std::string> StoreEnvironment(const std::string& ca_file) {
  std::map<std::string, std::string> environment;
  const StoreCredentials credentials = CredentialsFromEnvironment();
  if (!credentials.access_key.empty()) {
    environment["LAMBDADNN_S3_ACCESS_KEY_ID"] = credentials.access_key;
    environment["LAMBDADNN_S3_SECRET_ACCESS_KEY"] = credentials.secret_key;
  }
  if (!credentials.session_token.empty()) {
    environment["LAMBDADNN_S3_SESSION_TOKEN"] = credentials.session_token;
  }
  for (const char* name : {"LAMBDADNN_S3_ENDPOINT", "LAMBDADNN_S3_REGION",
                           "LAMBDADNN_S3_PATH_STYLE", "LAMBDADNN_S3_CA_FILE"}) {
    if (const auto value = GetEnvironment(name); value.has_value()) environment[name] = *value;
  }
  if (!ca_file.empty()) environment["LAMBDADNN_S3_CA_FILE"] = ca_file;
  return environment;
}

Result<std::unique_ptr<ObjectStore>> OpenJobStore(const StoreReference& reference,
                                                  const std::string& ca_file, Runtime& runtime,
                                                  double retry_budget_seconds) {
  StoreConfig config;
  if (retry_budget_seconds > 0) config.retry_budget_seconds = retry_budget_seconds;
  config.uri = reference.uri;
  config.endpoint = !reference.endpoint.empty()
                        ? reference.endpoint
                        : GetEnvironment("LAMBDADNN_S3_ENDPOINT").value_or("");
  config.region = reference.region;
  config.path_style = reference.path_style;
  config.ca_file = !ca_file.empty() ? ca_file : GetEnvironment("LAMBDADNN_S3_CA_FILE").value_or("");
  config.credentials = CredentialsFromEnvironment();
  return OpenStore(config, runtime);
}

}  // namespace lambdadnn
