// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/store/store_access.h"

#include "common/base/base64.h"
#include "common/base/files.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

constexpr const char* kCredentialsField = "spec.objectStore.credentialsSecretRef";
constexpr const char* kCaField = "spec.objectStore.caSecretRef";

Result<Json> ReadSecret(KubeClient& kube, const Job& job, const std::string& name,
                        const std::string& field, const std::string& keys) {
  Result<Json> secret = kube.Get(SecretType(), {job.metadata.namespace_name, name});
  if (secret.status().code() == StatusCode::kNotFound) {
    return FailedPreconditionError(field + ": there is no Secret '" + name + "' in namespace " +
                                   job.metadata.namespace_name + "; create it with " + keys);
  }
  if (!secret.ok()) return secret.status().WithContext(field);
  return secret;
}

// "" = it has no such key.
Result<std::string> ValueOf(const Json& secret, const std::string& key, const std::string& field) {
  const auto data = secret.find("data");
  if (data == secret.end() || !data->is_object() || !data->contains(key)) return std::string();
  const Json& encoded = data->at(key);
  auto value = encoded.is_string() ? DecodeBase64(encoded.get<std::string>()) : std::nullopt;
  if (!value) return FailedPreconditionError(field + ": its key " + key + " is not base64 text");
  return *std::move(value);
}

// It has the key, and something in it.
Result<std::string> NeededValue(const Json& secret, const std::string& key, const std::string& name,
                                const std::string& field) {
  LDNN_ASSIGN_OR_RETURN(std::string value, ValueOf(secret, key, field));
  if (!value.empty()) return value;
  return FailedPreconditionError(field + ": Secret '" + name + "' has no " + key + "; add it");
}

}  // namespace

Result<StoreSecrets> ReadStoreSecrets(KubeClient& kube, const Job& job) {
  StoreSecrets secrets;
  const std::string& credentials = job.spec.object_store.credentials_secret;
  if (!credentials.empty()) {
    LDNN_ASSIGN_OR_RETURN(const Json secret,
                          ReadSecret(kube, job, credentials, kCredentialsField,
                                     "the keys accessKeyId and secretAccessKey"));
    secrets.version = credentials + "@" + ResourceVersionOf(secret);
    LDNN_ASSIGN_OR_RETURN(secrets.credentials.access_key,
                          NeededValue(secret, "accessKeyId", credentials, kCredentialsField));
    LDNN_ASSIGN_OR_RETURN(secrets.credentials.secret_key,
                          NeededValue(secret, "secretAccessKey", credentials, kCredentialsField));
    LDNN_ASSIGN_OR_RETURN(secrets.credentials.session_token,
                          ValueOf(secret, "sessionToken", kCredentialsField));
    LDNN_ASSIGN_OR_RETURN(secrets.credentials.role_arn,
                          ValueOf(secret, "roleArn", kCredentialsField));
  }
  const std::string& ca = job.spec.object_store.ca_secret;
  if (!ca.empty()) {
    LDNN_ASSIGN_OR_RETURN(const Json secret,
                          ReadSecret(kube, job, ca, kCaField, "the key ca.crt (PEM)"));
    secrets.version += "/" + ca + "@" + ResourceVersionOf(secret);
    LDNN_ASSIGN_OR_RETURN(secrets.ca_pem, NeededValue(secret, "ca.crt", ca, kCaField));
  }
  return secrets;
}

bool IsAccessFailure(const Status& status) {
  return status.code() == StatusCode::kUnauthenticated ||
         status.code() == StatusCode::kPermissionDenied;
}

StoreReference OwnStoreReference(const std::string& uri) {
  const ObjectStoreSpec defaults;
  StoreReference reference;
  reference.uri = uri;
  reference.region = GetEnvironment("LAMBDADNN_S3_REGION").value_or(defaults.region);
  reference.path_style = GetEnvironment("LAMBDADNN_S3_PATH_STYLE").value_or("true") != "false";
  reference.sign_payload = GetEnvironment("LAMBDADNN_S3_SIGN_PAYLOAD").value_or("true") != "false";
  return reference;
}

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
  for (const char* name :
       {"LAMBDADNN_S3_ENDPOINT", "LAMBDADNN_S3_REGION", "LAMBDADNN_S3_PATH_STYLE",
        "LAMBDADNN_S3_SIGN_PAYLOAD", "LAMBDADNN_S3_CA_FILE"}) {
    if (const auto value = GetEnvironment(name); value.has_value()) environment[name] = *value;
  }
  if (!ca_file.empty()) environment["LAMBDADNN_S3_CA_FILE"] = ca_file;
  return environment;
}

Result<std::map<std::string, std::string>> PortableStoreEnvironment(const std::string& ca_file) {
  std::map<std::string, std::string> environment = StoreEnvironment(ca_file);
  const auto file = environment.find("LAMBDADNN_S3_CA_FILE");
  if (file == environment.end()) return environment;
  Result<std::string> pem = ReadFile(file->second);
  if (!pem.ok()) return pem.status().WithContext("the authorities of the object stores");
  environment["LAMBDADNN_S3_CA_PEM"] = *std::move(pem);
  environment.erase("LAMBDADNN_S3_CA_FILE");
  return environment;
}

std::map<std::string, std::string> StoreEnvironment(
    const std::map<std::string, std::string>& of_process, const StoreSecrets& secrets) {
  std::map<std::string, std::string> environment = of_process;
  if (!secrets.credentials.access_key.empty()) {
    environment["LAMBDADNN_S3_ACCESS_KEY_ID"] = secrets.credentials.access_key;
    environment["LAMBDADNN_S3_SECRET_ACCESS_KEY"] = secrets.credentials.secret_key;
    environment.erase("LAMBDADNN_S3_SESSION_TOKEN");
    if (!secrets.credentials.session_token.empty()) {
      environment["LAMBDADNN_S3_SESSION_TOKEN"] = secrets.credentials.session_token;
    }
  }
  if (!secrets.ca_pem.empty()) {
    environment.erase("LAMBDADNN_S3_CA_FILE");
    environment["LAMBDADNN_S3_CA_PEM"] = secrets.ca_pem;
  }
  return environment;
}

std::map<std::string, std::string> WithoutCredentials(
    std::map<std::string, std::string> environment) {
  for (const char* name : {"LAMBDADNN_S3_ACCESS_KEY_ID", "LAMBDADNN_S3_SECRET_ACCESS_KEY",
                           "LAMBDADNN_S3_SESSION_TOKEN"}) {
    environment.erase(name);
  }
  return environment;
}

namespace {

StoreConfig ConfigOf(const StoreReference& reference, const StoreSecrets& secrets,
                     const std::string& ca_file, std::shared_ptr<HttpCancellation> cancellation) {
  StoreConfig config;
  config.cancellation = std::move(cancellation);
  config.uri = reference.uri;
  config.endpoint = !reference.endpoint.empty()
                        ? reference.endpoint
                        : GetEnvironment("LAMBDADNN_S3_ENDPOINT").value_or("");
  config.region = reference.region;
  config.path_style = reference.path_style;
  config.sign_payload = reference.sign_payload;
  config.ca_pem = secrets.ca_pem;
  if (config.ca_pem.empty()) {
    config.ca_file =
        !ca_file.empty() ? ca_file : GetEnvironment("LAMBDADNN_S3_CA_FILE").value_or("");
  }
  config.credentials =
      !secrets.credentials.access_key.empty() ? secrets.credentials : CredentialsFromEnvironment();
  return config;
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> OpenJobStore(const StoreReference& reference,
                                                  const StoreSecrets& secrets,
                                                  const std::string& ca_file, Runtime& runtime,
                                                  double retry_budget_seconds,
                                                  std::shared_ptr<HttpCancellation> cancellation) {
  StoreConfig config = ConfigOf(reference, secrets, ca_file, std::move(cancellation));
  if (retry_budget_seconds > 0) config.retry_budget_seconds = retry_budget_seconds;
  return OpenStore(config, runtime);
}

Result<TemporaryCredentials> AssumeJobRole(const StoreReference& reference,
                                           const StoreSecrets& secrets, const std::string& ca_file,
                                           Runtime& runtime, const AssumedRole& role,
                                           std::shared_ptr<HttpCancellation> cancellation) {
  return AssumeStoreRole(ConfigOf(reference, secrets, ca_file, std::move(cancellation)), runtime,
                         role);
}

StoreBulkhead StoreBulkheadOf(const Job& job) {
  const StoreReference store = MakeStoreReference(job);
  return {job.metadata.namespace_name, (store.endpoint.empty() ? store.uri : store.endpoint) + " " +
                                           job.spec.object_store.credentials_secret};
}

}  // namespace lambdadnn
