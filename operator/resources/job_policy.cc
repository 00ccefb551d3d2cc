// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/job_policy.h"

#include <algorithm>
#include <array>
#include <set>

#include "common/json/dump_json.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kS3 = "s3://";
constexpr const char* kResource = "arn:aws:s3:::";

std::string WithoutSlash(std::string uri) {
  while (uri.ends_with('/')) uri.pop_back();
  return uri;
}

// The same rule as the readers of data sets have.
bool IsDataFile(const std::string& name) {
  static constexpr std::array kEndings = {".csv", ".npy", ".npz", ".bin",    "-ubyte",
                                          ".gz",  ".tar", ".txt", ".parquet"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](const char* ending) { return name.ends_with(ending); });
}

// "bucket/path" of what a spec names; empty for what is in no S3 store.
std::string ResourceOf(const std::string& uri) {
  return uri.starts_with(kS3) ? WithoutSlash(uri.substr(kS3.size())) : "";
}

Status CheckName(const std::string& resource) {
  if (resource.find_first_of("*?$") == std::string::npos) return OkStatus();
  return FailedPreconditionError("'" + resource +
                                 "' has one of * ? $ in its name, which a policy takes for a "
                                 "pattern");
}

// The folder of a data set: the files of one set are in one folder.
std::string FolderOf(const std::string& uri) {
  const std::string path = WithoutSlash(uri);
  const size_t slash = path.rfind('/');
  return IsDataFile(path.substr(slash + 1)) ? path.substr(0, slash) : path;
}

Status AddFolder(const std::string& uri, std::set<std::string>* resources) {
  const std::string resource = ResourceOf(uri);
  if (resource.empty()) return OkStatus();
  LDNN_RETURN_IF_ERROR(CheckName(resource));
  if (resource.find('/') == std::string::npos) {
    return FailedPreconditionError("data lies at the root of bucket " + resource +
                                   ", beside everything else in it; move it into a folder");
  }
  resources->insert(resource + "/*");
  return OkStatus();
}

Status AddData(const DatasetSpec& dataset, std::set<std::string>* resources) {
  if (dataset.uri.empty()) return OkStatus();  // rendered by the functions
  const std::string folder = FolderOf(dataset.uri);
  LDNN_RETURN_IF_ERROR(AddFolder(folder, resources));
  const std::string& test = dataset.test_uri;
  if (test.empty()) return OkStatus();
  const bool absolute = test.find("://") != std::string::npos;
  return AddFolder(FolderOf(absolute ? test : folder + "/" + test), resources);
}

// Shards and images are found by listing their folder; other formats have names of their own.
Status AddListing(const DatasetSpec& dataset, Json* statements) {
  if (!HasImageFiles(dataset.format)) return OkStatus();
  std::set<std::string> folders;
  LDNN_RETURN_IF_ERROR(AddData(dataset, &folders));
  for (const std::string& folder : folders) {  // "bucket/path/*"
    const size_t slash = folder.find('/');
    statements->push_back(
        {{"Effect", "Allow"},
         {"Action", "s3:ListBucket"},
         {"Resource", kResource + folder.substr(0, slash)},
         {"Condition", {{"StringLike", {{"s3:prefix", folder.substr(slash + 1)}}}}}});
  }
  return OkStatus();
}

}  // namespace

Result<std::string> JobStorePolicy(const Job& job, size_t max_characters) {
  const JobSpec& spec = job.spec;
  const StoreReference store = MakeStoreReference(job);
  const std::string root = ResourceOf(store.uri);
  if (root.empty()) return FailedPreconditionError(store.uri + " is no S3 store");
  const std::string own = root + "/" + store.prefix;
  LDNN_RETURN_IF_ERROR(CheckName(own));
  const size_t slash = own.find('/');

  std::set<std::string> readable;
  LDNN_RETURN_IF_ERROR(AddData(spec.dataset, &readable));
  if (const std::string model = ResourceOf(spec.model.torch_script_uri); !model.empty()) {
    LDNN_RETURN_IF_ERROR(CheckName(model));
    readable.insert(model);
  }
  if (const std::string resumed = ResourceOf(spec.checkpoint.resume_from); !resumed.empty()) {
    LDNN_RETURN_IF_ERROR(CheckName(resumed));
    readable.insert(resumed + "/*");
  }

  Json statements = Json::array();
  statements.push_back(
      {{"Effect", "Allow"},
       {"Action", {"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}},
       {"Resource", kResource + own + "/*"}});
  statements.push_back(
      {{"Effect", "Allow"},
       {"Action", "s3:ListBucket"},
       {"Resource", kResource + own.substr(0, slash)},
       {"Condition", {{"StringLike", {{"s3:prefix", own.substr(slash + 1) + "/*"}}}}}});
  LDNN_RETURN_IF_ERROR(AddListing(spec.dataset, &statements));
  if (!readable.empty()) {
    Json resources = Json::array();
    for (const std::string& resource : readable) resources.push_back(kResource + resource);
    statements.push_back(
        {{"Effect", "Allow"}, {"Action", "s3:GetObject"}, {"Resource", std::move(resources)}});
  }
  std::string policy =
      DumpJson(Json{{"Version", "2012-10-17"}, {"Statement", std::move(statements)}});
  if (policy.size() > max_characters) {
    return FailedPreconditionError("the policy for this job has " + std::to_string(policy.size()) +
                                   " characters, and " + std::to_string(max_characters) +
                                   " are the most; name fewer or shorter places");
  }
  return policy;
}

}  // namespace lambdadnn
