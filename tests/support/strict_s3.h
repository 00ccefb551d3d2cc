// SPDX-License-Identifier: Apache-2.0
// An S3 service in memory that is stricter than real ones: every rule of the API that a client
// could break unnoticed elsewhere is checked, and breaking one is remembered. Knows requests and
// answers, not the network (strict_s3_server.h). Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/store_credentials.h"
#include "common/http/http_transport.h"
#include "common/objectstore/memory_object_store.h"
#include "common/objectstore/sigv4.h"

namespace lambdadnn {

struct StrictS3Options {
  std::string bucket = "strict-bucket";
  std::string region = "test-region-1";
  StoreCredentials credentials{.access_key = "access", .secret_key = "secret", .session_token = ""};
  size_t max_list_page = 2;  // whatever the client asks for
  uint64_t min_part_bytes = 5 << 20;
  bool unsigned_payload = false;  // no body is hashed; else all are
  bool has_batch_delete = true;
};

struct StrictS3Request {
  std::string method;
  std::string target;  // as on the request line
  HttpFields fields;
  std::string body;
};

class StrictS3 {
 public:
  // `clock` outlives this.
  StrictS3(Clock& clock, StrictS3Options options);

  HttpResponse Handle(const StrictS3Request& request);

  // Rules that clients have broken, in order. Refusals that an honest client can meet (no such key)
  // are not among them.
  std::vector<std::string> violations() const;
  size_t open_uploads() const;
  MemoryObjectStore& objects() { return objects_; }
  const StrictS3Options& options() const { return options_; }

 private:
  struct Parsed {
    std::string bucket;
    std::string key;
    std::map<std::string, std::string> query;
  };
  struct Upload {
    std::string key;
    std::map<int, Bytes> parts;
  };

  HttpResponse Violation(int status, const std::string& code, const std::string& what);
  // nullopt: nothing is wrong.
  std::optional<HttpResponse> CheckFraming(const StrictS3Request& request);
  std::optional<HttpResponse> CheckTarget(const StrictS3Request& request, Parsed* parsed);
  std::optional<HttpResponse> CheckSignature(const StrictS3Request& request);
  HttpResponse HandleBucket(const StrictS3Request& request, const Parsed& parsed);
  HttpResponse HandleObject(const StrictS3Request& request, const Parsed& parsed);
  HttpResponse HandleUpload(const StrictS3Request& request, const Parsed& parsed);
  HttpResponse List(const Parsed& parsed);
  HttpResponse DeleteBatch(const StrictS3Request& request);
  HttpResponse GetObject(const StrictS3Request& request, const std::string& key);
  HttpResponse PutObject(const StrictS3Request& request, const std::string& key, ByteView body);
  HttpResponse CompleteUpload(const StrictS3Request& request, const std::string& id,
                              const std::string& key);

  Clock& clock_;
  const StrictS3Options options_;
  MemoryObjectStore objects_;
  mutable std::mutex mutex_;
  std::vector<std::string> violations_;
  std::map<std::string, Upload> uploads_;
  // Continuation tokens tell a client nothing and are good for the same prefix only.
  std::map<std::string, std::pair<std::string, std::string>> tokens_;
  int next_id_ = 1;
};

}  // namespace lambdadnn
