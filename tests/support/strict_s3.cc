// SPDX-License-Identifier: Apache-2.0
#include "tests/support/strict_s3.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/markup.h"
#include "common/base/percent_encoding.h"
#include "common/base/text.h"
#include "common/objectstore/s3_xml.h"

namespace lambdadnn {
namespace {

constexpr double kMaxSkewSeconds = 900;
constexpr size_t kMaxBatchDelete = 1000;

HttpResponse Answer(int status, const std::string& body = "", HttpFields fields = {}) {
  HttpResponse response;
  response.status = status;
  response.fields = std::move(fields);
  response.body = ToBytes(body);
  return response;
}

HttpResponse Error(int status, const std::string& code, const std::string& message) {
  return Answer(status,
                "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code><Message>" +
                    EscapeMarkup(message) + "</Message></Error>",
                {{"Content-Type", "application/xml"}});
}

// Escapes in upper case alone, as signatures need them.
std::optional<std::string> DecodeUpperCase(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const std::string digits(text.substr(i + 1, 2));
    if (digits.find_first_not_of("0123456789ABCDEF") != std::string::npos) return std::nullopt;
    decoded += static_cast<char>(std::stoi(digits, nullptr, 16));
    i += 2;
  }
  return decoded;
}

std::string ETagOf(ByteView body) { return "\"" + Hex64(Xxh3(body)) + "\""; }

// "Credential=…" of an Authorization value.
std::string PartOf(std::string_view authorization, std::string_view name) {
  const size_t begin = authorization.find(std::string(name) + "=");
  if (begin == authorization.npos) return "";
  const std::string_view rest = authorization.substr(begin + name.size() + 1);
  return std::string(rest.substr(0, rest.find(',')));
}

}  // namespace

StrictS3::StrictS3(Clock& clock, StrictS3Options options)
    : clock_(clock), options_(std::move(options)) {}

std::vector<std::string> StrictS3::violations() const {
  const std::lock_guard lock(mutex_);
  return violations_;
}

size_t StrictS3::open_uploads() const {
  const std::lock_guard lock(mutex_);
  return uploads_.size();
}

HttpResponse StrictS3::Violation(int status, const std::string& code, const std::string& what) {
  const std::lock_guard lock(mutex_);
  violations_.push_back(what);
  return Error(status, code, what);
}

HttpResponse StrictS3::Handle(const StrictS3Request& request) {
  Parsed parsed;
  if (auto refusal = CheckFraming(request)) return *std::move(refusal);
  if (auto refusal = CheckTarget(request, &parsed)) return *std::move(refusal);
  if (auto refusal = CheckSignature(request)) return *std::move(refusal);
  if (parsed.bucket != options_.bucket) {
    return Error(404, "NoSuchBucket", "The specified bucket does not exist");
  }
  if (parsed.key.empty()) return HandleBucket(request, parsed);
  if (parsed.query.contains("uploads") || parsed.query.contains("uploadId")) {
    return HandleUpload(request, parsed);
  }
  return HandleObject(request, parsed);
}

std::optional<HttpResponse> StrictS3::CheckFraming(const StrictS3Request& request) {
  const std::string_view length = FindField(request.fields, "Content-Length");
  const bool has_body = request.method == "PUT" || request.method == "POST";
  if (has_body && length.empty()) {
    return Violation(411, "MissingContentLength", request.method + " without Content-Length");
  }
  if (!FindField(request.fields, "Transfer-Encoding").empty()) {
    return Violation(501, "NotImplemented", "a chunked request");
  }
  if (!has_body && !request.body.empty()) {
    return Violation(400, "UnexpectedContent", request.method + " with a body");
  }
  std::set<std::string> seen;
  for (const auto& [name, value] : request.fields) {
    if (!seen.insert(SignedFieldNames({{name, value}})).second) {
      return Violation(400, "InvalidRequest", "the field " + name + " twice");
    }
  }
  return std::nullopt;
}

std::optional<HttpResponse> StrictS3::CheckTarget(const StrictS3Request& request, Parsed* parsed) {
  const size_t mark = std::min(request.target.find('?'), request.target.size());
  const std::string path = request.target.substr(0, mark);
  const auto decoded = DecodeUpperCase(path);
  if (!decoded || PercentEncode(*decoded, "/") != path) {
    return Violation(400, "InvalidURI", "the path " + path + " is not encoded as it is signed");
  }
  const std::string host(FindField(request.fields, "Host"));
  std::string rest = decoded->substr(1);
  if (host.starts_with(options_.bucket + ".")) {
    parsed->bucket = options_.bucket;
  } else {
    const size_t slash = std::min(rest.find('/'), rest.size());
    parsed->bucket = rest.substr(0, slash);
    rest = slash < rest.size() ? rest.substr(slash + 1) : "";
  }
  parsed->key = rest;
  if (!parsed->key.empty() && !ValidateKey(parsed->key).ok()) {
    return Violation(400, "InvalidArgument", "the key " + parsed->key);
  }
  if (mark == request.target.size()) return std::nullopt;
  const std::string query = request.target.substr(mark + 1);
  QueryParameters parameters;
  for (const std::string& pair : Split(query, '&')) {
    const size_t equals = pair.find('=');
    const auto name = DecodeUpperCase(pair.substr(0, equals));
    const auto value = equals == std::string::npos ? std::optional<std::string>("")
                                                   : DecodeUpperCase(pair.substr(equals + 1));
    if (!name || !value) return Violation(400, "InvalidURI", "the query " + query);
    parameters.emplace_back(*name, *value);
    parsed->query[*name] = *value;
  }
  if (CanonicalQuery(parameters) != query) {
    return Violation(400, "InvalidURI", "the query " + query + " is not encoded as it is signed");
  }
  return std::nullopt;
}

std::optional<HttpResponse> StrictS3::CheckSignature(const StrictS3Request& request) {
  const std::string authorization(FindField(request.fields, "Authorization"));
  const std::string timestamp(FindField(request.fields, "x-amz-date"));
  const std::string payload_hash(FindField(request.fields, "x-amz-content-sha256"));
  WallTime signed_at;
  if (!authorization.starts_with("AWS4-HMAC-SHA256 ") ||
      !ParseAmzTimestamp(timestamp, &signed_at)) {
    return Violation(403, "AccessDenied", "no signature");
  }
  if (std::abs(ToSeconds(clock_.Wall() - signed_at)) > kMaxSkewSeconds) {
    return Error(403, "RequestTimeTooSkewed", "the clocks differ too much");
  }
  const std::string credential = PartOf(authorization, "Credential");
  const std::string scope = timestamp.substr(0, 8) + "/" + options_.region + "/s3/aws4_request";
  const size_t slash = std::min(credential.find('/'), credential.size());
  if (credential.substr(0, slash) != options_.credentials.access_key) {
    return Error(403, "InvalidAccessKeyId", "no such access key");
  }
  if (credential.substr(std::min(slash + 1, credential.size())) != scope) {
    return Error(400, "AuthorizationHeaderMalformed", "the region or the date is wrong");
  }
  if (FindField(request.fields, "x-amz-security-token") != options_.credentials.session_token) {
    return Error(400, "InvalidToken", "the session token is wrong");
  }
  const bool hashed = !options_.unsigned_payload || request.body.empty();
  if (payload_hash != (hashed ? Sha256Hex(request.body) : std::string(kUnsignedPayload))) {
    return Violation(400, "XAmzContentSHA256Mismatch", "the payload's hash is " + payload_hash);
  }
  const std::vector<std::string> names = Split(PartOf(authorization, "SignedHeaders"), ';');
  SigV4Request rebuilt{.method = request.method,
                       .path = request.target.substr(0, request.target.find('?')),
                       .query = {},
                       .fields = {},
                       .payload_hash = payload_hash};
  for (const auto& [name, value] : request.fields) {
    const std::string lower = SignedFieldNames({{name, value}});
    const bool is_signed = std::find(names.begin(), names.end(), lower) != names.end();
    if (is_signed) {
      rebuilt.fields.emplace_back(name, value);
    } else if (lower.starts_with("x-amz-") || lower == "host" || lower == "range" ||
               lower == "if-none-match" || lower == "content-md5") {
      return Violation(403, "AccessDenied", "the field " + lower + " is not signed");
    }
  }
  std::string canonical = CanonicalRequest(rebuilt);
  // The query goes in as it stands in the target, which is in canonical form.
  if (const size_t mark = request.target.find('?'); mark != std::string::npos) {
    const size_t line = request.method.size() + 1 + rebuilt.path.size() + 1;
    canonical.insert(line, request.target.substr(mark + 1));
  }
  const std::string expected =
      Signature(options_.credentials.secret_key, timestamp, options_.region,
                StringToSign(timestamp, options_.region, canonical));
  if (PartOf(authorization, "Signature") != expected) {
    return Error(403, "SignatureDoesNotMatch", "the signature is wrong");
  }
  return std::nullopt;
}

HttpResponse StrictS3::HandleBucket(const StrictS3Request& request, const Parsed& parsed) {
  if (request.method == "PUT" && parsed.query.empty()) return Answer(200);
  if (request.method == "GET" && parsed.query.contains("list-type")) return List(parsed);
  if (request.method == "POST" && parsed.query.contains("delete")) {
    if (!options_.has_batch_delete) return Error(501, "NotImplemented", "no batch delete here");
    return DeleteBatch(request);
  }
  return Violation(405, "MethodNotAllowed", request.method + " " + request.target);
}

HttpResponse StrictS3::List(const Parsed& parsed) {
  const auto parameter = [&](const std::string& name) {
    const auto it = parsed.query.find(name);
    return it == parsed.query.end() ? std::string() : it->second;
  };
  const auto max_keys = ParseInteger(parameter("max-keys"));
  if (parameter("list-type") != "2" || !max_keys || *max_keys < 1 || *max_keys > 1000) {
    return Violation(400, "InvalidArgument", "a list of " + parameter("max-keys") + " keys");
  }
  const std::string prefix = parameter("prefix");
  std::string start_after = parameter("start-after");
  if (const std::string token = parameter("continuation-token"); !token.empty()) {
    const std::lock_guard lock(mutex_);
    const auto it = tokens_.find(token);
    if (it == tokens_.end() || it->second.first != prefix) {
      return Error(400, "InvalidArgument", "the continuation token is not for this list");
    }
    start_after = it->second.second;
  }
  const int limit =
      static_cast<int>(std::min<size_t>(static_cast<size_t>(*max_keys), options_.max_list_page));
  const ObjectList list = objects_.List(prefix, start_after, limit).value();
  const bool encode = parameter("encoding-type") == "url";
  std::string xml = "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"urn:x\">";
  if (encode) xml += "<EncodingType>url</EncodingType>";
  for (const ObjectInfo& object : list.objects) {
    xml += "<Contents><Key>" +
           (encode ? PercentEncode(object.key, "/") : EscapeMarkup(object.key)) + "</Key><Size>" +
           std::to_string(object.size) + "</Size></Contents>";
  }
  xml += list.next_start_after.empty() ? "<IsTruncated>false</IsTruncated>"
                                       : "<IsTruncated>true</IsTruncated>";
  if (!list.next_start_after.empty()) {
    const std::lock_guard lock(mutex_);
    const std::string token = "token/+=" + std::to_string(next_id_++);
    tokens_[token] = {prefix, list.next_start_after};
    xml += "<NextContinuationToken>" + token + "</NextContinuationToken>";
  }
  return Answer(200, xml + "</ListBucketResult>");
}

HttpResponse StrictS3::DeleteBatch(const StrictS3Request& request) {
  if (FindField(request.fields, "Content-MD5") != Md5Base64(request.body)) {
    return Violation(400, "InvalidDigest", "a batch delete without its Content-MD5");
  }
  const Result<XmlElement> root = ParseXml(request.body);
  if (!root.ok() || root->name != "Delete") return Violation(400, "MalformedXML", request.body);
  size_t keys = 0;
  for (const XmlElement& child : root->children) {
    if (child.name != "Object") continue;
    ++keys;
    (void)objects_.Delete(child.ChildText("Key"));
  }
  if (keys < 1 || keys > kMaxBatchDelete) {
    return Violation(400, "MalformedXML", "a batch of " + std::to_string(keys) + " keys");
  }
  return Answer(200, "<DeleteResult></DeleteResult>");
}

HttpResponse StrictS3::HandleObject(const StrictS3Request& request, const Parsed& parsed) {
  if (!parsed.query.empty()) return Violation(400, "InvalidArgument", request.target);
  if (request.method == "PUT") return PutObject(request, parsed.key, AsBytes(request.body));
  if (request.method == "GET" || request.method == "HEAD") return GetObject(request, parsed.key);
  if (request.method == "DELETE") {
    (void)objects_.Delete(parsed.key);
    return Answer(204);
  }
  return Violation(405, "MethodNotAllowed", request.method + " " + request.target);
}

HttpResponse StrictS3::PutObject(const StrictS3Request& request, const std::string& key,
                                 ByteView body) {
  const std::string_view condition = FindField(request.fields, "If-None-Match");
  if (!condition.empty() && condition != "*") {
    return Violation(501, "NotImplemented", "If-None-Match: " + std::string(condition));
  }
  const Status put = objects_.Put(key, std::span(&body, 1), {.if_absent = condition == "*"});
  if (put.code() == StatusCode::kAlreadyExists) {
    return Error(412, "PreconditionFailed", "it is there");
  }
  return Answer(200, "", {{"ETag", ETagOf(body)}});
}

HttpResponse StrictS3::GetObject(const StrictS3Request& request, const std::string& key) {
  Result<Bytes> bytes = objects_.Get(key);
  if (!bytes.ok()) return Error(404, "NoSuchKey", "The specified key does not exist.");
  HttpResponse response = Answer(200);
  const std::string range(FindField(request.fields, "Range"));
  if (range.empty()) {
    response.body = *std::move(bytes);
    return response;
  }
  const size_t dash = range.find('-');
  const auto first = ParseInteger(
      range.starts_with("bytes=") && dash != std::string::npos ? range.substr(6, dash - 6) : "");
  const std::string end = dash == std::string::npos ? "" : range.substr(dash + 1);
  const auto last = end.empty() ? std::optional<long long>(INT64_MAX) : ParseInteger(end);
  if (!first || !last || *first < 0 || *last < *first) {
    return Violation(400, "InvalidArgument", "the range " + range);
  }
  const auto size = static_cast<long long>(bytes->size());
  if (*first >= size) {
    response = Error(416, "InvalidRange", "the range is not satisfiable");
    response.fields.emplace_back("Content-Range", "bytes */" + std::to_string(size));
    return response;
  }
  const long long stop = std::min(*last, size - 1);
  response.status = 206;
  response.body.assign(bytes->begin() + *first, bytes->begin() + stop + 1);
  response.fields.emplace_back(
      "Content-Range",
      "bytes " + std::to_string(*first) + "-" + std::to_string(stop) + "/" + std::to_string(size));
  return response;
}

HttpResponse StrictS3::HandleUpload(const StrictS3Request& request, const Parsed& parsed) {
  if (request.method == "POST" && parsed.query.contains("uploads")) {
    const std::lock_guard lock(mutex_);
    const std::string id = "upload/+" + std::to_string(next_id_++);
    uploads_[id].key = parsed.key;
    return Answer(200, "<InitiateMultipartUploadResult><UploadId>" + id +
                           "</UploadId></InitiateMultipartUploadResult>");
  }
  const std::string id = parsed.query.at("uploadId");
  {
    const std::lock_guard lock(mutex_);
    const auto it = uploads_.find(id);
    if (it == uploads_.end() || it->second.key != parsed.key) {
      return Error(404, "NoSuchUpload", "The specified upload does not exist.");
    }
    if (request.method == "DELETE") {
      uploads_.erase(it);
      return Answer(204);
    }
    if (request.method == "PUT" && parsed.query.contains("partNumber")) {
      const auto number = ParseInteger(parsed.query.at("partNumber"));
      if (number && *number >= 1 && *number <= 10'000) {
        it->second.parts[static_cast<int>(*number)] = ToBytes(request.body);
        return Answer(200, "", {{"ETag", ETagOf(AsBytes(request.body))}});
      }
    }
  }
  if (request.method == "POST") return CompleteUpload(request, id, parsed.key);
  return Violation(405, "MethodNotAllowed", request.method + " " + request.target);
}

HttpResponse StrictS3::CompleteUpload(const StrictS3Request& request, const std::string& id,
                                      const std::string& key) {
  const Result<XmlElement> root = ParseXml(request.body);
  if (!root.ok() || root->name != "CompleteMultipartUpload" || root->children.empty()) {
    return Violation(400, "MalformedXML", request.body);
  }
  Bytes whole;
  {
    const std::lock_guard lock(mutex_);
    const Upload& upload = uploads_[id];
    for (size_t i = 0; i < root->children.size(); ++i) {
      const XmlElement& part = root->children[i];
      const auto it = upload.parts.find(static_cast<int>(i + 1));
      if (it == upload.parts.end() || part.ChildText("PartNumber") != std::to_string(i + 1) ||
          part.ChildText("ETag") != ETagOf(it->second)) {
        violations_.push_back("part " + std::to_string(i + 1) + " is not what was uploaded");
        return Error(400, "InvalidPart", violations_.back());
      }
      if (i + 1 < root->children.size() && it->second.size() < options_.min_part_bytes) {
        violations_.push_back("part " + std::to_string(i + 1) + " is too small");
        return Error(400, "EntityTooSmall", violations_.back());
      }
      whole.insert(whole.end(), it->second.begin(), it->second.end());
    }
  }
  HttpResponse response = PutObject(request, key, whole);
  // AWS answers 200 at once and tells of a failure in the body; so does this for what is late.
  if (response.status != 200) return response;
  const std::lock_guard lock(mutex_);
  uploads_.erase(id);
  return Answer(200, "<CompleteMultipartUploadResult/>");
}

}  // namespace lambdadnn
