// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include "common/base/check.h"
#include "common/base/percent_encoding.h"
#include "common/base/text.h"
#include "common/objectstore/sha256.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr size_t kDateDigits = 8;  // of the timestamp

std::string LowerAscii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string Digest(const EVP_MD* algorithm, std::span<const ByteView> parts) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_MD_CTX* const context = EVP_MD_CTX_new();
  bool good = context != nullptr && EVP_DigestInit_ex(context, algorithm, nullptr) == 1;
  for (const ByteView part : parts) {
    good = good && EVP_DigestUpdate(context, part.data(), part.size()) == 1;
  }
  good = good && EVP_DigestFinal_ex(context, digest.data(), &size) == 1;
  EVP_MD_CTX_free(context);
  LDNN_CHECK(good, "OpenSSL cannot compute a digest");
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned int size = 0;
  LDNN_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                  reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(),
                  &size) != nullptr,
             "OpenSSL cannot compute an HMAC");
  return {reinterpret_cast<const char*>(mac.data()), size};
}

// Lower-case names with trimmed values, sorted by name.
HttpFields Canonical(const HttpFields& fields) {
  HttpFields canonical;
  for (const auto& [name, value] : fields) {
    canonical.emplace_back(LowerAscii(name), std::string(Trim(value)));
  }
  std::sort(canonical.begin(), canonical.end());
  return canonical;
}

std::string Scope(std::string_view timestamp, std::string_view region, std::string_view service) {
  return std::string(timestamp.substr(0, kDateDigits)) + "/" + std::string(region) + "/" +
         std::string(service) + "/aws4_request";
}

}  // namespace

std::string CanonicalQuery(QueryParameters query) {
  for (auto& [name, value] : query) {
    name = PercentEncode(name);
    value = PercentEncode(value);
  }
  std::sort(query.begin(), query.end());
  std::string text;
  for (const auto& [name, value] : query) {
    if (!text.empty()) text += '&';
    text += name + "=" + value;
  }
  return text;
}

std::string SignedFieldNames(const HttpFields& fields) {
  std::string names;
  for (const auto& [name, value] : Canonical(fields)) {
    if (!names.empty()) names += ';';
    names += name;
  }
  return names;
}

std::string CanonicalRequest(const SigV4Request& request) {
  std::string text =
      request.method + "\n" + request.path + "\n" + CanonicalQuery(request.query) + "\n";
  for (const auto& [name, value] : Canonical(request.fields)) text += name + ":" + value + "\n";
  return text + "\n" + SignedFieldNames(request.fields) + "\n" + request.payload_hash;
}

std::string AmzTimestamp(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(time));
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> text{};
  const size_t size = std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &utc);
  return {text.data(), size};
}

bool ParseAmzTimestamp(std::string_view text, WallTime* time) {
  constexpr std::string_view kShape = "00000000T000000Z";
  if (text.size() != kShape.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (kShape[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != kShape[i]) return false;
  }
  const auto number = [&](size_t begin, size_t size) {
    return static_cast<int>(ParseInteger(text.substr(begin, size)).value_or(0));
  };
  std::tm utc{};
  utc.tm_year = number(0, 4) - 1900;
  utc.tm_mon = number(4, 2) - 1;
  utc.tm_mday = number(6, 2);
  utc.tm_hour = number(9, 2);
  utc.tm_min = number(11, 2);
  utc.tm_sec = number(13, 2);
  *time =
      std::chrono::time_point_cast<Duration>(std::chrono::system_clock::from_time_t(timegm(&utc)));
  return true;
}

std::string StringToSign(std::string_view timestamp, std::string_view region,
                         std::string_view canonical_request, std::string_view service) {
  return std::string(kAlgorithm) + "\n" + std::string(timestamp) + "\n" +
         Scope(timestamp, region, service) + "\n" + Sha256Hex(canonical_request);
}

std::string Signature(std::string_view secret_key, std::string_view timestamp,
                      std::string_view region, std::string_view string_to_sign,
                      std::string_view service) {
  std::string key = HmacSha256("AWS4" + std::string(secret_key), timestamp.substr(0, kDateDigits));
  key = HmacSha256(key, region);
  key = HmacSha256(key, service);
  key = HmacSha256(key, "aws4_request");
  return ToHex(HmacSha256(key, string_to_sign));
}

std::string Authorization(const SigV4Request& request, std::string_view access_key,
                          std::string_view secret_key, std::string_view region,
                          std::string_view timestamp, std::string_view service) {
  const std::string to_sign = StringToSign(timestamp, region, CanonicalRequest(request), service);
  return std::string(kAlgorithm) + " Credential=" + std::string(access_key) + "/" +
         Scope(timestamp, region, service) + ",SignedHeaders=" + SignedFieldNames(request.fields) +
         ",Signature=" + Signature(secret_key, timestamp, region, to_sign, service);
}

std::string Sha256Hex(std::span<const ByteView> parts) {
  Sha256 sum;
  for (const ByteView part : parts) sum.Add(part);
  return sum.Hex();
}

std::string Sha256Hex(std::string_view text) {
  const ByteView part = AsBytes(text);
  return Sha256Hex(std::span(&part, 1));
}

std::string Md5Base64(std::string_view text) {
  const ByteView part = AsBytes(text);
  const std::string digest = Digest(EVP_md5(), std::span(&part, 1));
  std::array<unsigned char, 32> encoded{};  // 16 bytes become 24 letters and a zero
  const int size =
      EVP_EncodeBlock(encoded.data(), reinterpret_cast<const unsigned char*>(digest.data()),
                      static_cast<int>(digest.size()));
  return {reinterpret_cast<const char*>(encoded.data()), static_cast<size_t>(size)};
}

}  // namespace lambdadnn
