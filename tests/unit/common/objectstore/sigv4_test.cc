// SPDX-License-Identifier: Apache-2.0
// The examples of "Signature Calculations for the Authorization Header: Transferring Payload in a
// Single Chunk" in AWS's S3 API reference, with its published keys and signatures.
#include "common/objectstore/sigv4.h"

#include <gtest/gtest.h>

#include "common/base/percent_encoding.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kAccessKey = "AKIAIOSFODNN7EXAMPLE";
constexpr std::string_view kSecretKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
constexpr std::string_view kTimestamp = "20130524T000000Z";
constexpr std::string_view kRegion = "us-east-1";
constexpr std::string_view kEmptyHash =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

SigV4Request Example(std::string method, std::string path, QueryParameters query, HttpFields fields,
                     std::string payload_hash) {
  SigV4Request request{.method = std::move(method),
                       .path = std::move(path),
                       .query = std::move(query),
                       .fields = std::move(fields),
                       .payload_hash = std::move(payload_hash)};
  request.fields.emplace_back("Host", "examplebucket.s3.amazonaws.com");
  request.fields.emplace_back("x-amz-content-sha256", request.payload_hash);
  request.fields.emplace_back("x-amz-date", kTimestamp);
  return request;
}

std::string Sign(const SigV4Request& request) {
  return Signature(kSecretKey, kTimestamp, kRegion,
                   StringToSign(kTimestamp, kRegion, CanonicalRequest(request)));
}

TEST(SigV4, GetObjectWithRange) {
  const SigV4Request request =
      Example("GET", "/test.txt", {}, {{"Range", " bytes=0-9 "}}, std::string(kEmptyHash));
  EXPECT_EQ(CanonicalRequest(request),
            "GET\n"
            "/test.txt\n"
            "\n"
            "host:examplebucket.s3.amazonaws.com\n"
            "range:bytes=0-9\n"
            "x-amz-content-sha256:"
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
            "x-amz-date:20130524T000000Z\n"
            "\n"
            "host;range;x-amz-content-sha256;x-amz-date\n"
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(StringToSign(kTimestamp, kRegion, CanonicalRequest(request)),
            "AWS4-HMAC-SHA256\n"
            "20130524T000000Z\n"
            "20130524/us-east-1/s3/aws4_request\n"
            "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972");
  EXPECT_EQ(Authorization(request, kAccessKey, kSecretKey, kRegion, kTimestamp),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4, PutObjectWithAnEncodedKey) {
  const std::string hash = Sha256Hex("Welcome to Amazon S3.");
  EXPECT_EQ(hash, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
  const SigV4Request request = Example(
      "PUT", PercentEncode("/test$file.text", "/"), {},
      {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
      hash);
  EXPECT_EQ(Sha256Hex(CanonicalRequest(request)),
            "9e0e90d9c76de8fa5b200d8c849cd5b8dc7a3be3951ddb7f6a76b4158342019d");
  EXPECT_EQ(Sign(request), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(SigV4, QueryParameterWithoutValue) {
  const SigV4Request request =
      Example("GET", "/", {{"lifecycle", ""}}, {}, std::string(kEmptyHash));
  EXPECT_EQ(Sha256Hex(CanonicalRequest(request)),
            "9766c798316ff2757b517bc739a67f6213b4ab36dd5da2f94eaebf79c77395ca");
  EXPECT_EQ(Sign(request), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(SigV4, QueryParametersInAnyOrder) {
  const SigV4Request request =
      Example("GET", "/", {{"prefix", "J"}, {"max-keys", "2"}}, {}, std::string(kEmptyHash));
  EXPECT_EQ(Sha256Hex(CanonicalRequest(request)),
            "df57d21db20da04d7fa30298dd4488ba3a2b47ca3a489c74750e0f1e7df1b9b7");
  EXPECT_EQ(Sign(request), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4, EncodesAllButTheUnreserved) {
  EXPECT_EQ(PercentEncode("a-Z_0.9~"), "a-Z_0.9~");
  EXPECT_EQ(PercentEncode("a b+c%/ü*", "/"), "a%20b%2Bc%25/%C3%BC%2A");
  EXPECT_EQ(PercentEncode("a/b"), "a%2Fb");
  EXPECT_EQ(CanonicalQuery({{"b", "2"}, {"a", "x y"}, {"a-", ""}}), "a=x%20y&a-=&b=2");
}

TEST(SigV4, HashesPartsAsTheirConcatenation) {
  const std::vector<ByteView> parts = {AsBytes("Welcome to "), ByteView(), AsBytes("Amazon S3.")};
  EXPECT_EQ(Sha256Hex(parts), Sha256Hex("Welcome to Amazon S3."));
  EXPECT_EQ(Sha256Hex(""), kEmptyHash);
  // RFC 1321's example, in base64.
  EXPECT_EQ(Md5Base64("abc"), "kAFQmDzST7DWlj99KOF/cg==");
}

TEST(SigV4, TimestampsComeBack) {
  WallTime time;
  ASSERT_TRUE(ParseAmzTimestamp(kTimestamp, &time));
  EXPECT_EQ(AmzTimestamp(time), kTimestamp);
  EXPECT_EQ(FormatRfc3339(time), "2013-05-24T00:00:00Z");
  for (const std::string_view bad : {"", "20130524", "20130524T000000", "2013-05-24T00:00Z",
                                     "20130524T00000xZ", "20130524T000000Z "}) {
    EXPECT_FALSE(ParseAmzTimestamp(bad, &time)) << bad;
  }
}

}  // namespace
}  // namespace lambdadnn
