// SPDX-License-Identifier: Apache-2.0
// S3ObjectStore over the real transport against servers that mean harm: they drip, flood, hang, or
// list for ever. Each call ends within its bytes and its time, with a sentence that names the
// store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/runtime.h"
#include "common/objectstore/prefix_object_store.h"
#include "common/objectstore/s3_object_store.h"
#include "tests/support/raw_server.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;
// What may be under way in sockets when the client ends the connection.
constexpr int64_t kInSockets = 48 << 20;

const std::string kChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kHuge = "HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n";

std::string Xml(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class S3HostileServer : public testing::Test {
 protected:
  std::unique_ptr<S3ObjectStore> Open(const RawServer& server) {
    S3Options options;
    options.endpoint = server.Url("");
    options.bucket = "bucket";
    options.credentials.access_key = "key";
    options.credentials.secret_key = "secret";
    options.limits.error_bytes = 10'000;
    options.limits.control_bytes = 10'000;
    options.limits.list_bytes = 200'000;
    options.limits.object_bytes = kMiB;
    options.limits.total_seconds = 0.3;
    return std::make_unique<S3ObjectStore>(NewDataTransport({.inactivity_seconds = 10}).value(),
                                           clock_, options);
  }
  // What each operation ends in.
  std::vector<Status> TryAll(ObjectStore& store) {
    return {store.Get("k").status(),
            store.Get("k", ByteRange{0, 1000}).status(),
            GetBounded(store, "k", 1000, "a test").status(),
            store.Put("k", AsBytes("x")),
            store.Delete("k"),
            store.DeleteMany(std::vector<std::string>{"a", "b"}),
            store.List("p/", "", 1000).status()};
  }

  SystemClock clock_;
};

TEST_F(S3HostileServer, FloodsAreCutAtTheLimitOfTheirPurpose) {
  for (const bool chunked : {true, false}) {
    std::atomic<int64_t> sent{0};
    RawServer server({chunked ? Flood(kChunked, LargeChunk(), &sent)
                              : Flood(kHuge, std::string(65536, 'x'), &sent)});
    const auto store = Open(server);
    const std::vector<Status> ends = TryAll(*store);
    for (const Status& status : ends) {
      EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.ToString();
      EXPECT_THAT(status.message(), HasSubstr(server.Url("/bucket")));
      EXPECT_THAT(status.message(), HasSubstr("is longer than the "));
    }
    EXPECT_THAT(ends[1].message(), HasSubstr("object 'k' is longer than the 1000 bytes"));
    EXPECT_LT(sent, kInSockets * static_cast<int64_t>(ends.size()));
  }
}

// The status decides; of the sentence as much is kept as it may have.
TEST_F(S3HostileServer, EndlessRefusalsAreRefusals) {
  for (const bool chunked : {true, false}) {
    const std::string head = "HTTP/1.1 403 Forbidden\r\n";
    RawServer server(
        {chunked ? Flood(head + "Transfer-Encoding: chunked\r\n\r\n", LargeChunk())
                 : Flood(head + "Content-Length: 1099511627776\r\n\r\n", std::string(65536, 'x'))});
    const auto store = Open(server);
    for (const Status& status : TryAll(*store)) {
      EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << status.ToString();
      EXPECT_LT(status.message().size(), 1000U);
    }
  }
}

TEST_F(S3HostileServer, DripsEndInTime) {
  for (const std::string& head :
       {kHuge, std::string("HTTP/1.1 200 OK\r\nX-Long: "),
        std::string("HTTP/1.1 503 Busy\r\nContent-Length: 9999\r\n\r\n")}) {
    RawServer server({Drip(head)});
    const auto store = Open(server);
    // A length beyond the limit ends at once.
    const StatusCode code =
        head == kHuge ? StatusCode::kResourceExhausted : StatusCode::kUnavailable;
    EXPECT_EQ(store->Get("k", ByteRange{0, 1000}).status().code(), code);
    EXPECT_EQ(store->List("p/", "", 1000).status().code(), code);
  }
  RawServer server({Drip("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")});
  const Status status = Open(server)->Get("k", ByteRange{0, 1000}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("within 0.3 s and a second more for each 65536 bytes"));
}

TEST_F(S3HostileServer, HangsEndInTime) {
  RawServer server({Hang()});
  const auto store = Open(server);
  EXPECT_EQ(store->Get("k").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(store->Put("k", AsBytes("x")).code(), StatusCode::kUnavailable);
  EXPECT_EQ(store->List("p/", "", 1000).status().code(), StatusCode::kUnavailable);
}

// An empty page that says there is more, with a token; and a page with the same keys for ever.
TEST_F(S3HostileServer, EndlessListingsEnd) {
  const std::string more =
      "<IsTruncated>true</IsTruncated><NextContinuationToken>t"
      "</NextContinuationToken></ListBucketResult>";
  const std::string same = "<ListBucketResult><Contents><Key>p/a</Key><Size>1</Size></Contents>";
  for (const std::string& page : {"<ListBucketResult>" + more, same + more}) {
    RawServer server({AnswerWith(Xml(page), 1 << 20)});
    PrefixObjectStore store(Open(server), "p/");
    const Status status = store.List("", "", 1000).status();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("does not answer as S3 does"));
  }
}

// What a prefix is put before may be listed by anybody.
TEST_F(S3HostileServer, KeysOfOtherFoldersAreRefused) {
  RawServer server({AnswerWith(Xml("<ListBucketResult><Contents><Key>q/a</Key><Size>1</Size>"
                                   "</Contents></ListBucketResult>"),
                               9)});
  PrefixObjectStore store(Open(server), "p/");
  EXPECT_EQ(store.List("", "", 1000).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace lambdadnn
