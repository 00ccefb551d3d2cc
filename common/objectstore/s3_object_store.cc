// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/s3_object_store.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/objectstore/s3_errors.h"
#include "common/objectstore/s3_xml.h"

namespace lambdadnn {
namespace {

// S3's limits.
constexpr size_t kMaxBatchDelete = 1000;
constexpr uint64_t kMaxParts = 10'000;
constexpr uint64_t kMaxObjectBytes = uint64_t{5} << 40;
// MinIO denies access to a folder that another request is just removing because it became empty. A
// Put that is denied after others were allowed is therefore tried again, at once.
constexpr int kMaxDeniedPuts = 4;
// S3 may answer with fewer keys than were asked for, or with none, and go on.
constexpr int kMaxPagesOfAList = 100;

uint64_t TotalSize(std::span<const ByteView> parts) {
  uint64_t size = 0;
  for (const ByteView part : parts) size += part.size();
  return size;
}

// The pieces that make up bytes [offset, offset + length) of the concatenation.
std::vector<ByteView> Slice(std::span<const ByteView> parts, uint64_t offset, uint64_t length) {
  std::vector<ByteView> slice;
  for (const ByteView part : parts) {
    if (offset >= part.size()) {
      offset -= part.size();
      continue;
    }
    const uint64_t taken = std::min<uint64_t>(part.size() - offset, length);
    if (taken > 0) slice.push_back(part.subspan(offset, taken));
    length -= taken;
    offset = 0;
  }
  return slice;
}

Status NotS3(const S3Client& client, const Status& parse_error) {
  return UnavailableError(client.Name() + " does not answer as S3 does: " + parse_error.message());
}

// The object's size in "bytes */123", which an answer 416 carries.
std::optional<uint64_t> SizeFromContentRange(std::string_view value) {
  const size_t slash = value.rfind('/');
  if (slash == value.npos) return std::nullopt;
  const auto size = ParseInteger(value.substr(slash + 1));
  if (!size || *size < 0) return std::nullopt;
  return static_cast<uint64_t>(*size);
}

}  // namespace

S3ObjectStore::S3ObjectStore(std::unique_ptr<HttpTransport> transport, Clock& clock,
                             S3Options options)
    : transport_(std::move(transport)), client_(*transport_, clock, std::move(options)) {}

Status S3ObjectStore::Put(std::string_view key, std::span<const ByteView> parts,
                          const PutOptions& options) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const uint64_t size = TotalSize(parts);
  if (size > client_.options().part_bytes) {
    const auto part = [&](ByteRange range) -> Result<std::vector<ByteView>> {
      return Slice(parts, range.offset, range.length);
    };
    return PutInParts(key, size, client_.options().part_bytes, part, options);
  }
  S3Call call{.method = "PUT", .key = key, .body = {parts.begin(), parts.end()}};
  if (options.if_absent) {
    call.fields.emplace_back("if-none-match", "*");
    // Sent twice, the second request would find the first's object and report kAlreadyExists.
    call.repeatable = false;
  }
  Status status;
  for (int tries = 0; tries < kMaxDeniedPuts; ++tries) {
    status = client_.Expect2xx(call).status();
    if (status.code() != StatusCode::kPermissionDenied || !may_write_) break;
  }
  if (status.ok()) bucket_seen_ = may_write_ = true;
  return status;
}

Status S3ObjectStore::PutPieces(std::string_view key, uint64_t size, const PieceReader& read) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  if (size > kMaxObjectBytes) {
    return InvalidArgumentError("object '" + std::string(key) + "' of " + std::to_string(size) +
                                " bytes is larger than S3 stores; make smaller parts");
  }
  if (size <= kPieceBytes) {
    LDNN_ASSIGN_OR_RETURN(const Bytes bytes, ReadPiece(read, {0, size}));
    return ObjectStore::Put(key, bytes);
  }
  Bytes piece;
  const auto part = [&](ByteRange range) -> Result<std::vector<ByteView>> {
    LDNN_ASSIGN_OR_RETURN(piece, ReadPiece(read, range));
    return std::vector<ByteView>{ByteView(piece)};
  };
  return PutInParts(key, size, kPieceBytes, part, {});
}

Status S3ObjectStore::PutInParts(std::string_view key, uint64_t size, uint64_t part_bytes,
                                 const PartReader& read, const PutOptions& options) {
  part_bytes = std::max(part_bytes, (size + kMaxParts - 1) / kMaxParts);
  LDNN_ASSIGN_OR_RETURN(
      const HttpResponse begun,
      client_.Expect2xx({.method = "POST", .key = key, .query = {{"uploads", ""}}}));
  const Result<std::string> upload_id = ParseUploadId(AsText(begun.body));
  if (!upload_id.ok()) return NotS3(client_, upload_id.status());

  Status status;
  std::vector<std::string> tags;
  for (uint64_t offset = 0; status.ok() && offset < size; offset += part_bytes) {
    Result<std::vector<ByteView>> body = read({offset, std::min(part_bytes, size - offset)});
    status = body.status();
    if (!status.ok()) break;
    Result<std::string> tag = UploadPart(key, *upload_id, tags.size() + 1, *std::move(body));
    status = tag.status();
    if (tag.ok()) tags.push_back(*std::move(tag));
  }
  if (status.ok()) status = CompleteUpload(key, *upload_id, tags, options);
  if (status.ok()) return status;
  // Best effort: an upload that is neither completed nor aborted is billed until the bucket's
  // lifecycle rule ends it. The error to report is the first.
  (void)client_.Send({.method = "DELETE", .key = key, .query = {{"uploadId", *upload_id}}});
  return status;
}

Result<std::string> S3ObjectStore::UploadPart(std::string_view key, const std::string& upload_id,
                                              size_t number, std::vector<ByteView> body) {
  LDNN_ASSIGN_OR_RETURN(
      const HttpResponse response,
      client_.Expect2xx({.method = "PUT",
                         .key = key,
                         .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload_id}},
                         .body = std::move(body)}));
  std::string tag(FindField(response.fields, "ETag"));
  if (tag.empty()) return NotS3(client_, InvalidArgumentError("a part was taken without an ETag"));
  return tag;
}

Status S3ObjectStore::CompleteUpload(std::string_view key, const std::string& upload_id,
                                     std::span<const std::string> tags, const PutOptions& options) {
  const std::string xml = CompleteUploadXml(tags);
  S3Call call{.method = "POST",
              .key = key,
              .query = {{"uploadId", upload_id}},
              .fields = {{"content-type", "application/xml"}},
              .body = {AsBytes(xml)},
              // The second of two finds no upload any more.
              .repeatable = false};
  if (options.if_absent) call.fields.emplace_back("if-none-match", "*");
  LDNN_ASSIGN_OR_RETURN(const HttpResponse response, client_.Expect2xx(call));
  // S3 may answer 200 before it has finished, to keep the connection alive; the body has the
  // result.
  if (ParseS3Error(AsText(response.body))) {
    HttpResponse refused = response;
    refused.status = 500;
    return client_.ErrorFrom(call, refused);
  }
  bucket_seen_ = true;
  return OkStatus();
}

Result<Bytes> S3ObjectStore::Get(std::string_view key, std::optional<ByteRange> range) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  if (range) return GetRange(key, *range);
  LDNN_ASSIGN_OR_RETURN(
      HttpResponse response,
      client_.Expect2xx(
          {.method = "GET", .key = key, .answer_bytes = client_.options().limits.object_bytes}));
  bucket_seen_ = true;
  return std::move(response.body);
}

Result<Bytes> S3ObjectStore::GetRange(std::string_view key, ByteRange range) {
  if (range.length == 0) {
    LDNN_ASSIGN_OR_RETURN(const ObjectInfo info, Head(key));
    LDNN_RETURN_IF_ERROR(ClipRange(key, range, info.size).status());
    return Bytes();
  }
  std::string value = "bytes=" + std::to_string(range.offset) + "-";
  const uint64_t last = range.offset + (range.length - 1);
  // Beyond what a server reads into 64 bits, signed: to the end.
  if (last >= range.offset && last <= static_cast<uint64_t>(INT64_MAX)) {
    value += std::to_string(last);
  }
  const S3Call call{.method = "GET",
                    .key = key,
                    .fields = {{"range", value}},
                    .answer_bytes = std::min(range.length, client_.options().limits.object_bytes)};
  std::optional<uint64_t> size;
  if (range.offset > static_cast<uint64_t>(INT64_MAX)) {
    LDNN_ASSIGN_OR_RETURN(const ObjectInfo info, Head(key));
    size = info.size;
  } else {
    LDNN_ASSIGN_OR_RETURN(HttpResponse response, client_.Send(call));
    if (response.status == 206) {
      bucket_seen_ = true;
      return std::move(response.body);
    }
    if (response.status == 200) {  // a server that ignores ranges, or an empty object
      LDNN_ASSIGN_OR_RETURN(const ByteRange part, ClipRange(key, range, response.body.size()));
      const auto begin = response.body.begin() + static_cast<std::ptrdiff_t>(part.offset);
      return Bytes(begin, begin + static_cast<std::ptrdiff_t>(part.length));
    }
    if (response.status != 416) return client_.ErrorFrom(call, response);
    size = SizeFromContentRange(FindField(response.fields, "Content-Range"));
    if (!size) {
      LDNN_ASSIGN_OR_RETURN(const ObjectInfo info, Head(key));
      size = info.size;
    }
  }
  // Nothing is left from there on: an empty range at the very end, an error beyond it.
  LDNN_RETURN_IF_ERROR(ClipRange(key, range, *size).status());
  return Bytes();
}

Result<ObjectInfo> S3ObjectStore::Head(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const S3Call call{.method = "HEAD", .key = key};
  LDNN_ASSIGN_OR_RETURN(const HttpResponse response, client_.Send(call));
  if (response.status == 404 && bucket_seen_) return client_.ErrorFrom(call, response);
  if (response.status / 100 == 4) return ExplainHead(key);
  if (response.status != 200) return client_.ErrorFrom(call, response);
  bucket_seen_ = true;
  const auto size = ParseInteger(FindField(response.fields, "Content-Length"));
  if (!size || *size < 0) {
    return NotS3(client_, InvalidArgumentError("a HEAD without Content-Length"));
  }
  return ObjectInfo{std::string(key), static_cast<uint64_t>(*size)};
}

Status S3ObjectStore::ExplainHead(std::string_view key) {
  const S3Call call{.method = "GET", .key = key, .fields = {{"range", "bytes=0-0"}}};
  LDNN_ASSIGN_OR_RETURN(const HttpResponse response, client_.Send(call));
  if (response.status / 100 == 2 || response.status == 416) {
    // The object was created between the two requests.
    return UnavailableError("object '" + std::string(key) + "' of " + client_.Name() +
                            " changed while it was looked at");
  }
  Status status = client_.ErrorFrom(call, response);
  const std::optional<S3Error> error = ParseS3Error(AsText(response.body));
  if (error && error->code == "NoSuchKey") bucket_seen_ = true;
  return status;
}

Status S3ObjectStore::Delete(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const S3Call call{.method = "DELETE", .key = key};
  LDNN_ASSIGN_OR_RETURN(const HttpResponse response, client_.Send(call));
  if (response.status / 100 == 2) return OkStatus();
  const std::optional<S3Error> error = ParseS3Error(AsText(response.body));
  if (response.status == 404 && !(error && error->code == "NoSuchBucket")) return OkStatus();
  return client_.ErrorFrom(call, response);
}

Status S3ObjectStore::DeleteMany(std::span<const std::string> keys) {
  for (const std::string& key : keys) LDNN_RETURN_IF_ERROR(ValidateKey(key));
  while (!keys.empty()) {
    const auto batch = keys.first(std::min(keys.size(), kMaxBatchDelete));
    Status status = has_batch_delete_ ? DeleteBatch(batch) : ObjectStore::DeleteMany(batch);
    if (status.code() == StatusCode::kUnimplemented) {
      has_batch_delete_ = false;
      status = ObjectStore::DeleteMany(batch);
    }
    LDNN_RETURN_IF_ERROR(status);
    keys = keys.subspan(batch.size());
  }
  return OkStatus();
}

Status S3ObjectStore::DeleteBatch(std::span<const std::string> keys) {
  const std::string xml = DeleteRequestXml(keys);
  const S3Call call{
      .method = "POST",
      .query = {{"delete", ""}},
      .fields = {{"content-md5", Md5Base64(xml)}, {"content-type", "application/xml"}},
      .body = {AsBytes(xml)},
      .answer_bytes = client_.options().limits.list_bytes};
  LDNN_ASSIGN_OR_RETURN(const HttpResponse response, client_.Expect2xx(call));
  const Result<std::vector<S3Error>> errors = ParseDeleteResult(AsText(response.body));
  if (!errors.ok()) return NotS3(client_, errors.status());
  for (const S3Error& error : *errors) {
    if (error.code == "NoSuchKey") continue;
    // A batch's errors have no HTTP status of their own; the code decides.
    const int status = error.code == "AccessDenied" ? 403 : 500;
    return S3Status(error, status,
                    {.method = "DELETE",
                     .endpoint = client_.options().endpoint,
                     .bucket = client_.options().bucket,
                     .region = client_.options().region,
                     .key = error.key,
                     .now = {}});
  }
  return OkStatus();
}

Result<ObjectList> S3ObjectStore::List(std::string_view prefix, std::string_view start_after,
                                       int limit) {
  LDNN_RETURN_IF_ERROR(ValidateListLimit(limit));
  const auto wanted = static_cast<size_t>(limit);
  ObjectList list;
  std::string continuation;
  for (int pages = 0; pages < kMaxPagesOfAList; ++pages) {
    S3Call call{.method = "GET",
                .query = {{"list-type", "2"},
                          {"encoding-type", "url"},
                          {"max-keys", std::to_string(wanted - list.objects.size())}},
                .answer_bytes = client_.options().limits.list_bytes};
    if (!prefix.empty()) call.query.emplace_back("prefix", prefix);
    if (!continuation.empty()) {
      call.query.emplace_back("continuation-token", continuation);
    } else if (!start_after.empty()) {
      call.query.emplace_back("start-after", start_after);
    }
    LDNN_ASSIGN_OR_RETURN(const HttpResponse response, client_.Expect2xx(call));
    Result<S3ListPage> page = ParseListPage(AsText(response.body));
    if (!page.ok()) return NotS3(client_, page.status());
    bucket_seen_ = true;
    std::move(page->objects.begin(), page->objects.end(), std::back_inserter(list.objects));
    const bool more = page->truncated;
    const bool enough = list.objects.size() >= wanted || page->next_continuation_token.empty();
    if (more && enough) list.next_start_after = list.objects.back().key;
    if (!more || enough) {
      const Status sound = CheckListPage(list, prefix, start_after, limit);
      return sound.ok() ? Result<ObjectList>(std::move(list)) : NotS3(client_, sound);
    }
    continuation = std::move(page->next_continuation_token);
  }
  return NotS3(client_, InvalidArgumentError("a list of at most " + std::to_string(limit) +
                                             " objects has no end after " +
                                             std::to_string(kMaxPagesOfAList) + " pages"));
}

Status S3ObjectStore::CreateBucket() {
  const S3Call call{.method = "PUT"};
  LDNN_ASSIGN_OR_RETURN(const HttpResponse response, client_.Send(call));
  if (response.status / 100 == 2) return OkStatus();
  const std::optional<S3Error> error = ParseS3Error(AsText(response.body));
  if (error && error->code == "BucketAlreadyOwnedByYou") return OkStatus();
  return client_.ErrorFrom(call, response);
}

}  // namespace lambdadnn
