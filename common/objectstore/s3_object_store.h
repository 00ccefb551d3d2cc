// SPDX-License-Identifier: Apache-2.0
// Objects in a bucket of S3, MinIO or another server with S3's API. Needs only PUT, GET with range,
// HEAD, DELETE, ListObjectsV2, multi-object delete (single deletes where there is none), multipart
// upload and, for create-only Puts, If-None-Match. Thread-safe; retries are RetryingObjectStore's.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "common/objectstore/object_store.h"
#include "common/objectstore/s3_client.h"

namespace lambdadnn {

class S3ObjectStore final : public ObjectStore {
 public:
  // `clock` outlives this; `options` are valid.
  S3ObjectStore(std::unique_ptr<HttpTransport> transport, Clock& clock, S3Options options);

  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override;
  Status PutPieces(std::string_view key, uint64_t size, const PieceReader& read) override;
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override;
  Result<ObjectInfo> Head(std::string_view key) override;
  Status Delete(std::string_view key) override;
  Status DeleteMany(std::span<const std::string> keys) override;
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override;
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return "s3://" + client_.options().bucket; }

  // For setting up tests and demonstrations. OK when the bucket is already ours.
  Status CreateBucket();

 private:
  // The body of one part, valid until the next is asked for.
  using PartReader = std::function<Result<std::vector<ByteView>>(ByteRange)>;
  Status PutInParts(std::string_view key, uint64_t size, uint64_t part_bytes,
                    const PartReader& read, const PutOptions& options);
  Result<std::string> UploadPart(std::string_view key, const std::string& upload_id, size_t number,
                                 std::vector<ByteView> body);
  Status CompleteUpload(std::string_view key, const std::string& upload_id,
                        std::span<const std::string> tags, const PutOptions& options);
  Result<Bytes> GetRange(std::string_view key, ByteRange range);
  Status DeleteBatch(std::span<const std::string> keys);
  // A HEAD's refusal has no body; this asks again in a way that has one.
  Status ExplainHead(std::string_view key);

  const std::unique_ptr<HttpTransport> transport_;
  S3Client client_;
  // The bucket has been seen, so an object that is missing is all that is missing.
  std::atomic<bool> bucket_seen_{false};
  std::atomic<bool> may_write_{false};
  std::atomic<bool> has_batch_delete_{true};
};

}  // namespace lambdadnn
