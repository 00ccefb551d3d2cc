// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/tenant_rules.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "common/base/text.h"
#include "operator/api/job_id.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

constexpr const char* kSecretField = "spec.objectStore.credentialsSecretRef";
constexpr std::string_view kNamespaceMark = "{namespace}";

// Of an S3 store the first part is the bucket.
struct Place {
  std::string scheme;
  std::vector<std::string> parts;
};

bool IsPlain(const std::string& part) {
  static constexpr std::array kEncoded = {"%2e", "%2f", "%5c"};
  if (part.empty() || part == "." || part == "..") return false;
  std::string lower = part;
  for (char& c : lower) {
    if (c == '\\' || static_cast<unsigned char>(c) < ' ') return false;
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::none_of(kEncoded.begin(), kEncoded.end(), [&](const char* encoded) {
    return lower.find(encoded) != std::string::npos;
  });
}

Result<Place> ReadPlace(const std::string& uri) {
  const size_t scheme = uri.find("://");
  const std::string name = scheme == std::string::npos ? "" : uri.substr(0, scheme);
  if (name != "s3" && name != "file") {
    return InvalidArgumentError("'" + uri +
                                "' is no place; write s3://bucket/folder or "
                                "file:///folder");
  }
  Place place{name, Split(uri.substr(scheme + 3), '/')};
  while (!place.parts.empty() && place.parts.back().empty()) place.parts.pop_back();
  if (place.scheme == "file") {
    if (place.parts.empty() || !place.parts.front().empty()) {
      return InvalidArgumentError("'" + uri + "' names no folder; write file:///folder");
    }
    place.parts.erase(place.parts.begin());
  }
  if (place.parts.empty()) {
    return InvalidArgumentError("'" + uri + "' names no bucket; write s3://bucket/folder");
  }
  for (const std::string& part : place.parts) {
    if (IsPlain(part)) continue;
    return InvalidArgumentError("'" + uri + "' has the part '" + part +
                                "' in its path, which may not be; write the path without it");
  }
  return place;
}

bool Holds(const Place& folder, const Place& place) {
  return folder.scheme == place.scheme && folder.parts.size() <= place.parts.size() &&
         std::equal(folder.parts.begin(), folder.parts.end(), place.parts.begin());
}

// With symbolic links resolved as far as the path exists. Nothing when they cannot be read.
std::optional<Place> Resolved(const Place& place) {
  std::error_code error;
  const auto path = std::filesystem::weakly_canonical("/" + Join(place.parts, "/"), error);
  if (error) return std::nullopt;
  Result<Place> resolved = ReadPlace("file://" + path.string());
  return resolved.ok() ? std::optional<Place>(*std::move(resolved)) : std::nullopt;
}

bool HoldsResolved(const Place& folder, const Place& place) {
  if (!Holds(folder, place)) return false;
  if (place.scheme != "file") return true;
  const std::optional<Place> real_folder = Resolved(folder);
  const std::optional<Place> real_place = Resolved(place);
  return real_folder && real_place && Holds(*real_folder, *real_place);
}

std::string ForNamespace(std::string uri, const std::string& name) {
  for (size_t at = uri.find(kNamespaceMark); at != std::string::npos;
       at = uri.find(kNamespaceMark, at + name.size())) {
    uri.replace(at, kNamespaceMark.size(), name);
  }
  return uri;
}

std::string WithoutSlash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

Status Refuse(const std::string& field, const std::string& what) {
  return PermissionDeniedError(field + ": " + what);
}

// Reached with the user's own credentials: the store checks the access.
bool BySecret(const Job& job, const std::string& uri) {
  return !job.spec.object_store.credentials_secret.empty() && uri.starts_with("s3://");
}

// The folder that holds <namespace>/<job id>.
Result<Place> RootOf(const Job& job) {
  const std::string own = "/" + job.metadata.namespace_name + "/" + JobIdOf(job);
  std::string prefix = JobPrefix(job);
  prefix.resize(prefix.size() - own.size());
  return ReadPlace(WithoutSlash(MakeStoreReference(job).uri) + "/" + prefix);
}

Status CheckStoreOf(const TenantRules& rules, const Job& job) {
  const ObjectStoreSpec& store = job.spec.object_store;
  if (store.uri.empty() && store.bucket.empty()) {
    return Refuse("spec.objectStore",
                  "names no store, and the operator has none of its own; name a bucket and " +
                      std::string(kSecretField) + ", or ask the administrator for --store");
  }
  const bool same_server =
      store.endpoint.empty() || WithoutSlash(store.endpoint) == WithoutSlash(rules.endpoint);
  if (!same_server) LDNN_RETURN_IF_ERROR(CheckEndpoint(rules.endpoints, store.endpoint));
  if (BySecret(job, MakeStoreReference(job).uri)) return OkStatus();
  const std::string field = store.uri.empty() ? "spec.objectStore" : "spec.objectStore.uri";
  Result<Place> root = RootOf(job);
  if (!root.ok()) return Refuse(field, root.status().message());
  Job own = job;
  own.spec.object_store = {};
  UseOperatorStore(rules, &own);
  const Result<Place> own_root = RootOf(own);
  const bool there = !rules.uri.empty() && own_root.ok() && own_root->scheme == root->scheme &&
                     own_root->parts == root->parts;
  if (there && same_server) return OkStatus();
  if (root->scheme == "file") {
    return Refuse(field,
                  "jobs may keep files in the operator's own store only; leave "
                  "spec.objectStore away, or name a bucket and " +
                      std::string(kSecretField));
  }
  return Refuse(field,
                "the operator's credentials are not for this endpoint, bucket and prefix; "
                "name a Secret in " +
                    std::string(kSecretField) +
                    " that may use them, or leave spec.objectStore away for the operator's "
                    "own store");
}

Status CheckReadable(const TenantRules& rules, const Job& job, const std::string& field,
                     const std::string& uri) {
  if (BySecret(job, uri)) return OkStatus();
  const Result<Place> place = ReadPlace(uri);
  if (!place.ok()) return Refuse(field, place.status().message());
  for (const std::string& readable : rules.readable) {
    const Result<Place> folder = ReadPlace(ForNamespace(readable, job.metadata.namespace_name));
    if (folder.ok() && HoldsResolved(*folder, *place)) return OkStatus();
  }
  const std::string what = uri + " is not among what jobs may read with the operator's rights; ";
  if (place->scheme == "file") {
    return Refuse(field, what +
                             "move it into a folder that they may read, or ask the administrator "
                             "to add its folder (--readable)");
  }
  return Refuse(field, what + "name a Secret in " + kSecretField +
                           " that may read it, or ask the administrator to add its folder "
                           "(--readable)");
}

// Names that are relative lie beside a data set that is a file, else in its folder.
std::vector<std::string> TestPlaces(const DatasetSpec& dataset) {
  if (dataset.test_uri.find("://") != std::string::npos) return {dataset.test_uri};
  const std::string uri = WithoutSlash(dataset.uri);
  std::vector<std::string> places = {uri + "/" + dataset.test_uri};
  const std::string name = uri.substr(uri.rfind('/') + 1);
  const bool may_be_file = name.find('.') != std::string::npos || name.ends_with("-ubyte");
  if (may_be_file) places.push_back(uri.substr(0, uri.rfind('/') + 1) + dataset.test_uri);
  return places;
}

}  // namespace

Status CheckStartCheckpoint(const Job& job) {
  if (!job.status.execution.start_checkpoint.has_value()) return OkStatus();
  const auto checkpoint = CheckpointFromJson(*job.status.execution.start_checkpoint);
  const std::string own = JobPrefix(job);
  if (!checkpoint.has_value() || checkpoint->prefix == own) return OkStatus();
  return Refuse("status.execution.startCheckpoint",
                "lies in " + checkpoint->prefix + ", not in the job's own " + own +
                    "; delete the job and create it again, with spec.checkpoint.resumeFrom if it "
                    "is to go on from there");
}

Status CheckPlace(const std::string& uri) {
  return ReadPlace(ForNamespace(uri, "namespace")).status();
}

void UseOperatorStore(const TenantRules& rules, Job* job) {
  ObjectStoreSpec& store = job->spec.object_store;
  if (!store.uri.empty() || !store.bucket.empty() || rules.uri.empty()) return;
  store.uri = WithoutSlash(rules.uri);
  store.endpoint = rules.endpoint;
  store.region = rules.region;
  store.path_style = rules.path_style;
  store.sign_payload = rules.sign_payload;
}

Status CheckReach(const TenantRules& rules, const Job& job) {
  const JobSpec& spec = job.spec;
  LDNN_RETURN_IF_ERROR(CheckStoreOf(rules, job));
  if (!spec.dataset.uri.empty()) {
    LDNN_RETURN_IF_ERROR(CheckReadable(rules, job, "spec.dataset.uri", spec.dataset.uri));
  }
  if (!spec.dataset.test_uri.empty()) {
    for (const std::string& place : TestPlaces(spec.dataset)) {
      LDNN_RETURN_IF_ERROR(CheckReadable(rules, job, "spec.dataset.testUri", place));
    }
  }
  if (!spec.model.torch_script_uri.empty()) {
    LDNN_RETURN_IF_ERROR(
        CheckReadable(rules, job, "spec.model.torchScript.uri", spec.model.torch_script_uri));
  }
  if (!spec.checkpoint.resume_from.empty()) {
    LDNN_RETURN_IF_ERROR(
        CheckReadable(rules, job, "spec.checkpoint.resumeFrom", spec.checkpoint.resume_from));
  }
  return OkStatus();
}

}  // namespace lambdadnn
