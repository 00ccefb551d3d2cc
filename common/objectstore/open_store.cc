// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/open_store.h"

#include <algorithm>
#include <filesystem>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/http/http_transport.h"
#include "common/objectstore/filesystem_object_store.h"
#include "common/objectstore/memory_object_store.h"
#include "common/objectstore/prefix_object_store.h"
#include "common/objectstore/retrying_object_store.h"
#include "common/objectstore/s3_object_store.h"
#include "common/objectstore/sts.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kMemory = "memory:";
constexpr std::string_view kFile = "file://";
constexpr std::string_view kS3 = "s3://";

// The one store of "memory:", shared by the whole process.
class SharedMemoryStore final : public ObjectStore {
 public:
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override {
    return Store().Put(key, parts, options);
  }
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override {
    return Store().Get(key, range);
  }
  Result<ObjectInfo> Head(std::string_view key) override { return Store().Head(key); }
  Status Delete(std::string_view key) override { return Store().Delete(key); }
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override {
    return Store().List(prefix, start_after, limit);
  }
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return std::string(kMemory); }

 private:
  static MemoryObjectStore& Store() {
    static MemoryObjectStore store;
    return store;
  }
};

// Requests that can be ended from another thread.
class EndableTransport final : public HttpTransport {
 public:
  EndableTransport(std::unique_ptr<HttpTransport> transport,
                   std::shared_ptr<HttpCancellation> cancellation)
      : transport_(std::move(transport)), cancellation_(std::move(cancellation)) {}

  Result<HttpResponse> Send(const HttpRequest& request) override {
    HttpRequest endable = request;  // bodies are views
    endable.cancellation = cancellation_;
    return transport_->Send(endable);
  }

 private:
  const std::unique_ptr<HttpTransport> transport_;
  const std::shared_ptr<HttpCancellation> cancellation_;
};

Status BadUri(const std::string& uri, const std::string& what) {
  return InvalidArgumentError("object store '" + uri + "': " + what +
                              "; write file:///absolute/folder or s3://bucket/prefix");
}

Result<std::unique_ptr<ObjectStore>> OpenFileStore(const std::string& uri) {
  const std::string root = uri.substr(kFile.size());
  if (!root.starts_with('/')) return BadUri(uri, "the folder's path is not absolute");
  for (const std::string& segment : Split(root, '/')) {
    if (segment == "..") return BadUri(uri, "the folder's path has '..' in it");
  }
  return std::unique_ptr<ObjectStore>(std::make_unique<FilesystemObjectStore>(root));
}

Result<S3Options> S3OptionsOf(const StoreConfig& config, const std::string& bucket) {
  S3Options options;
  options.endpoint = config.endpoint;
  options.bucket = bucket;
  options.region = config.region;
  options.path_style = config.path_style;
  options.sign_payload = config.sign_payload;
  options.credentials = config.credentials;
  LDNN_RETURN_IF_ERROR(options.Validate());
  return options;
}

Result<std::unique_ptr<HttpTransport>> TransportOf(const StoreConfig& config) {
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<HttpTransport> transport,
                        NewDataTransport({.inactivity_seconds = config.request_timeout_seconds,
                                          .ca_file = config.ca_file,
                                          .ca_pem = config.ca_pem}));
  if (config.cancellation != nullptr) {
    transport = std::make_unique<EndableTransport>(std::move(transport), config.cancellation);
  }
  return transport;
}

Result<std::unique_ptr<ObjectStore>> OpenS3Store(const StoreConfig& config,
                                                 const std::string& bucket, Runtime& runtime) {
  LDNN_ASSIGN_OR_RETURN(S3Options options, S3OptionsOf(config, bucket));
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<HttpTransport> transport, TransportOf(config));
  return std::unique_ptr<ObjectStore>(
      std::make_unique<S3ObjectStore>(std::move(transport), runtime.clock, std::move(options)));
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> OpenPlainStore(const StoreConfig& config, Runtime& runtime) {
  std::unique_ptr<ObjectStore> store;
  std::string prefix;
  if (config.uri.starts_with(kMemory)) {
    store = std::make_unique<SharedMemoryStore>();
    prefix = config.uri.substr(kMemory.size());
  } else if (config.uri.starts_with(kFile)) {
    LDNN_ASSIGN_OR_RETURN(store, OpenFileStore(config.uri));
  } else if (config.uri.starts_with(kS3)) {
    const std::string rest = config.uri.substr(kS3.size());
    const size_t slash = std::min(rest.find('/'), rest.size());
    LDNN_ASSIGN_OR_RETURN(store, OpenS3Store(config, rest.substr(0, slash), runtime));
    prefix = rest.substr(slash);
  } else {
    return BadUri(config.uri, "unknown kind of store");
  }
  while (prefix.starts_with('/')) prefix.erase(0, 1);
  while (prefix.ends_with('/')) prefix.pop_back();
  if (!prefix.empty()) {
    const Status valid = ValidateKey(prefix);
    if (!valid.ok()) return BadUri(config.uri, "its prefix is no key: " + valid.message());
    store = std::make_unique<PrefixObjectStore>(std::move(store), prefix + "/");
  }
  return store;
}

Result<std::unique_ptr<ObjectStore>> OpenStore(const StoreConfig& config, Runtime& runtime) {
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store, OpenPlainStore(config, runtime));
  const RetryOptions retry{.budget_seconds = config.retry_budget_seconds,
                           .sleep_until = config.sleep_until};
  LDNN_RETURN_IF_ERROR(retry.Validate());
  return std::unique_ptr<ObjectStore>(
      std::make_unique<RetryingObjectStore>(std::move(store), runtime, retry));
}

Result<TemporaryCredentials> AssumeStoreRole(const StoreConfig& config, Runtime& runtime,
                                             const AssumedRole& role) {
  if (!config.uri.starts_with(kS3)) {
    return UnimplementedError("'" + config.uri + "' is no S3 store and has no credentials");
  }
  const std::string bucket = Split(config.uri.substr(kS3.size()), '/').front();
  LDNN_ASSIGN_OR_RETURN(const S3Options options, S3OptionsOf(config, bucket));
  LDNN_ASSIGN_OR_RETURN(const std::unique_ptr<HttpTransport> transport, TransportOf(config));
  return AssumeRole(*transport, runtime.clock, options, role);
}

namespace {

// Without the line end that `echo` leaves; "" = there is none that can be read.
std::string FileOfSecret(const std::filesystem::path& file) {
  const Result<std::string> read = ReadFile(file.string());
  std::string text = read.ok() ? *read : "";
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

StoreCredentials CredentialsFromFolder(const std::string& folder) {
  // The kubelet replaces all files of a Secret at once, by another target of the link ..data: key
  // and secret are of the same version only if read below the same target.
  std::error_code none;
  std::filesystem::path at =
      std::filesystem::canonical(std::filesystem::path(folder) / "..data", none);
  if (none) at = folder;
  StoreCredentials credentials{.access_key = FileOfSecret(at / "accessKeyId"),
                               .secret_key = FileOfSecret(at / "secretAccessKey"),
                               .session_token = FileOfSecret(at / "sessionToken")};
  const bool whole = !credentials.access_key.empty() && !credentials.secret_key.empty();
  return whole ? credentials : StoreCredentials();
}

}  // namespace

StoreCredentials CredentialsFromEnvironment() {
  const auto read = [](const std::string& prefix) {
    // What cannot be read is missing, and said to be by whoever needs it.
    const auto secret = [&prefix](const char* name) {
      const Result<std::optional<std::string>> value = GetSecret(prefix + name);
      return value.ok() ? value->value_or("") : "";
    };
    return StoreCredentials{.access_key = secret("ACCESS_KEY_ID"),
                            .secret_key = secret("SECRET_ACCESS_KEY"),
                            .session_token = secret("SESSION_TOKEN")};
  };
  const std::string folder = GetEnvironment("LAMBDADNN_S3_CREDENTIALS_DIR").value_or("");
  StoreCredentials credentials =
      folder.empty() ? read("LAMBDADNN_S3_") : CredentialsFromFolder(folder);
  // All three from one place: a session token is never combined with another key.
  if (credentials.access_key.empty()) credentials = read("AWS_");
  // AWS_ROLE_ARN is another thing: the role of a web identity.
  credentials.role_arn = GetEnvironment("LAMBDADNN_S3_ROLE_ARN").value_or("");
  return credentials;
}

}  // namespace lambdadnn
