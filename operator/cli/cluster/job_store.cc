// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/job_store.h"

#include "common/base/base64.h"
#include "common/base/files.h"
#include "common/objectstore/open_store.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// The user waits.
constexpr double kRetryBudgetSeconds = 10;

const ResourceType& CoreSecretType() {
  static const ResourceType kType = {"", "v1", "secrets", "Secret"};
  return kType;
}

Result<std::string> SecretValue(const Json& secret, const std::string& key) {
  const auto data = secret.find("data");
  const std::string encoded = data == secret.end() ? "" : TextField(*data, key);
  auto value = DecodeBase64(encoded);
  if (encoded.empty() || !value) {
    return FailedPreconditionError("Secret " + NameOf(secret).name + " has no " + key);
  }
  return *std::move(value);
}

Status ReadCredentials(KubeClient& kube, const Job& job, StoreCredentials* credentials) {
  const std::string& name = job.spec.object_store.credentials_secret;
  const auto secret = kube.Get(CoreSecretType(), {job.metadata.namespace_name, name});
  if (!secret.ok()) {
    return secret.status().WithContext(
        "reading the store's credentials from Secret " + name +
        " (or set LAMBDADNN_S3_ACCESS_KEY_ID and LAMBDADNN_S3_SECRET_ACCESS_KEY)");
  }
  LDNN_ASSIGN_OR_RETURN(credentials->access_key, SecretValue(*secret, "accessKeyId"));
  LDNN_ASSIGN_OR_RETURN(credentials->secret_key, SecretValue(*secret, "secretAccessKey"));
  return OkStatus();
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> OpenStoreOfJob(KubeClient& kube, Runtime& runtime,
                                                    const Job& job) {
  const ObjectStoreSpec& spec = job.spec.object_store;
  if (spec.uri.empty() && spec.bucket.empty()) {
    return InvalidArgumentError("job " + job.metadata.name +
                                " names no object store (spec.objectStore): its results are in "
                                "the operator's own" +
                                (job.status.model_uri.empty() ? "" : ": " + job.status.model_uri));
  }
  const StoreReference reference = MakeStoreReference(job);
  StoreConfig config;
  config.uri = reference.uri;
  config.endpoint = !reference.endpoint.empty()
                        ? reference.endpoint
                        : GetEnvironment("LAMBDADNN_S3_ENDPOINT").value_or("");
  config.region = reference.region;
  config.path_style = reference.path_style;
  config.ca_file = GetEnvironment("LAMBDADNN_S3_CA_FILE").value_or("");
  config.retry_budget_seconds = kRetryBudgetSeconds;
  config.credentials = CredentialsFromEnvironment();
  if (config.credentials.access_key.empty() && !spec.credentials_secret.empty()) {
    LDNN_RETURN_IF_ERROR(ReadCredentials(kube, job, &config.credentials));
  }
  return OpenStore(config, runtime);
}

}  // namespace lambdadnn
