// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/job_key.h"

#include "common/base/base64.h"
#include "common/base/bytes.h"
#include "common/json/json_path.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

// The last two as in a Secret of type kubernetes.io/tls.
constexpr const char* kKeyEntry = "key";
constexpr const char* kCertificateEntry = "tls.crt";
constexpr const char* kPrivateKeyEntry = "tls.key";

// "" = there is none; nullopt: there is one that makes no sense.
std::optional<std::string> EntryOf(const Json& secret, const char* name) {
  const Json* entry = FindPath(secret, {"data", name});
  if (entry == nullptr) return "";
  if (!entry->is_string()) return std::nullopt;
  return DecodeBase64(entry->get<std::string>());
}

}  // namespace

std::string JobKeySecretName(const Job& job) { return job.metadata.name + "-lambdadnn-key"; }

std::string MakeJobKey(Random& random) {
  std::string key;
  for (int i = 0; i < 4; ++i) key += Hex64(random.Next());
  return key;
}

Json JobKeySecret(const Job& job, const JobKey& key) {
  Json data = {{kKeyEntry, EncodeBase64(key.key)}};
  if (key.tls.has_value()) {
    data[kCertificateEntry] = EncodeBase64(key.tls->certificate);
    data[kPrivateKeyEntry] = EncodeBase64(key.tls->private_key);
  }
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata",
           {{"name", JobKeySecretName(job)},
            {"namespace", job.metadata.namespace_name},
            {"labels", ChildLabels(job.metadata.name, job.metadata.uid)},
            {"ownerReferences", OwnerReferences(job.metadata.name, job.metadata.uid)}}},
          {"type", "Opaque"},
          {"data", std::move(data)}};
}

std::optional<JobKey> KeyOfSecret(const Job& job, const Json& secret) {
  if (!IsOwnedByJob(secret, job.metadata.uid)) return std::nullopt;
  const std::optional<std::string> key = EntryOf(secret, kKeyEntry);
  const std::optional<std::string> certificate = EntryOf(secret, kCertificateEntry);
  const std::optional<std::string> private_key = EntryOf(secret, kPrivateKeyEntry);
  if (!key.has_value() || !certificate.has_value() || !private_key.has_value()) return std::nullopt;
  // A certificate whose key is lost is none that functions could show.
  if (key->empty() || certificate->empty() != private_key->empty()) return std::nullopt;
  JobKey held = {*key};
  if (!certificate->empty()) held.tls = TlsIdentity{*certificate, *private_key};
  return held;
}

}  // namespace lambdadnn
