// SPDX-License-Identifier: Apache-2.0
// S3ObjectStore against the strict service: single failures, and what goes over the wire for them.
// What all stores have in common is in tests/conformance.
#include "common/objectstore/s3_object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/runtime.h"
#include "tests/support/strict_s3_server.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint64_t kPart = 5 << 20;

// Sends every request to one address, whatever host it names, as a DNS server would have it.
class ToOneAddress final : public HttpTransport {
 public:
  explicit ToOneAddress(std::string origin) : origin_(std::move(origin)) {}
  Result<HttpResponse> Send(const HttpRequest& request) override {
    HttpRequest sent = request;
    sent.url = origin_ + request.url.substr(request.url.find('/', 8));
    hosts.emplace_back(FindField(request.fields, "host"));
    return transport_->Send(sent);
  }
  std::vector<std::string> hosts;

 private:
  const std::string origin_;
  const std::unique_ptr<HttpTransport> transport_ =
      NewDataTransport({.inactivity_seconds = 10, .ca_file = ""}).value();
};

// Answers what it is told, without a network.
class Canned final : public HttpTransport {
 public:
  explicit Canned(HttpResponse response) : response_(std::move(response)) {}
  Result<HttpResponse> Send(const HttpRequest&) override { return response_; }

 private:
  const HttpResponse response_;
};

class ShiftedClock final : public Clock {
 public:
  Instant Now() override { return clock_.Now(); }
  WallTime Wall() override { return clock_.Wall() + FromSeconds(shift_seconds); }
  void SleepFor(Duration duration) override { clock_.SleepFor(duration); }
  double shift_seconds = 0;

 private:
  SystemClock clock_;
};

class S3ObjectStoreTest : public testing::Test {
 protected:
  void Start(const StrictS3Options& options = {}) {
    server_ = std::make_unique<StrictS3Server>(runtime_, options);
  }
  S3Options Options() const {
    S3Options options;
    options.endpoint = server_->endpoint();
    options.bucket = server_->service().options().bucket;
    options.region = server_->service().options().region;
    options.credentials = server_->service().options().credentials;
    options.part_bytes = kPart;
    return options;
  }
  std::unique_ptr<S3ObjectStore> Open(const S3Options& options) {
    return std::make_unique<S3ObjectStore>(
        NewDataTransport({.inactivity_seconds = 10, .ca_file = ""}).value(), client_clock_,
        options);
  }
  std::unique_ptr<S3ObjectStore> Open() { return Open(Options()); }
  void Fault(const StrictS3Faults& faults) { server_->SetFaults(faults); }
  MemoryObjectStore& Inside() { return server_->service().objects(); }

  SystemClock clock_;
  ShiftedClock client_clock_;
  ThreadExecutor executor_;
  SeededRandom random_{1};
  Runtime runtime_{clock_, executor_, random_};
  std::unique_ptr<StrictS3Server> server_;
};

TEST_F(S3ObjectStoreTest, WrongCredentialsAreSaidWithoutShowingThem) {
  Start();
  S3Options options = Options();
  options.credentials.secret_key = "guessed";
  const auto store = Open(options);
  for (const Status& status :
       {store->Put("k", AsBytes("x")), store->Get("k").status(), store->Head("k").status(),
        store->Delete("k"), store->List("", "", 1).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kUnauthenticated) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("secret key"));
    EXPECT_THAT(status.message(), Not(HasSubstr("guessed")));
  }
  EXPECT_TRUE(ListAll(Inside(), "")->empty());
}

TEST_F(S3ObjectStoreTest, ASkewedClockCorrectsItselfByTheServers) {
  Start();
  for (const double shift : {-1200.0, 86400.0}) {
    client_clock_.shift_seconds = shift;
    const auto store = Open();
    const int64_t before = server_->requests();
    EXPECT_TRUE(store->Put("k", AsBytes("x")).ok());
    EXPECT_EQ(server_->requests() - before, 2) << "once refused, once in the server's time";
    EXPECT_TRUE(store->Get("k").ok());
    EXPECT_TRUE(store->Head("k").ok());
    EXPECT_EQ(server_->requests() - before, 4) << "it is learnt once";
    EXPECT_TRUE(Open()->Head("k").ok()) << "an answer without a body tells as well";
    EXPECT_TRUE(store->Delete("k").ok());
    // Set right meanwhile: what was learnt is unlearnt.
    client_clock_.shift_seconds = 0;
    EXPECT_EQ(store->Get("k").status().code(), StatusCode::kNotFound);
  }
  const int64_t before = server_->requests();
  client_clock_.shift_seconds = 800;  // within what S3 allows
  EXPECT_EQ(Open()->Get("k").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(server_->requests() - before, 1);
  EXPECT_THAT(server_->service().violations(), IsEmpty());
}

// A refusal for other reasons is not repeated, and what cannot be corrected is said.
TEST_F(S3ObjectStoreTest, ASkewWithoutADateIsSaid) {
  HttpResponse refusal;
  refusal.status = 403;
  refusal.body = ToBytes("<Error><Code>RequestTimeTooSkewed</Code></Error>");
  Start();
  S3ObjectStore store(std::make_unique<Canned>(refusal), client_clock_, Options());
  const Status status = store.Get("k").status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("NTP"));
}

TEST_F(S3ObjectStoreTest, WrongRegionIsSaid) {
  Start();
  S3Options options = Options();
  options.region = "elsewhere-1";
  const Status status = Open(options)->Get("k").status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("region"));
}

TEST_F(S3ObjectStoreTest, SessionTokenIsSentAndSigned) {
  StrictS3Options strict;
  strict.credentials.session_token = "token/+=";
  Start(strict);
  EXPECT_TRUE(Open()->Put("k", AsBytes("x")).ok());
  S3Options options = Options();
  options.credentials.session_token = "";
  EXPECT_EQ(Open(options)->Put("k", AsBytes("x")).code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(server_->service().violations(), IsEmpty());
}

TEST_F(S3ObjectStoreTest, BodiesGoUnhashedWhereTheNetworkIsTrusted) {
  Start({.unsigned_payload = true});
  S3Options options = Options();
  options.sign_payload = false;
  const auto store = Open(options);
  ASSERT_TRUE(store->Put("k", AsBytes("x")).ok());
  EXPECT_EQ(AsText(store->Get("k").value()), "x");
  EXPECT_TRUE(store->Delete("k").ok());
  EXPECT_THAT(server_->service().violations(), IsEmpty());
  EXPECT_FALSE(Open()->Put("k", AsBytes("x")).ok()) << "hashed unless told";
}

TEST_F(S3ObjectStoreTest, VirtualHostStyleNamesTheBucketInTheHost) {
  Start();
  S3Options options = Options();
  options.endpoint = "http://s3.example:9000/";
  options.path_style = false;
  auto transport = std::make_unique<ToOneAddress>(server_->endpoint());
  const ToOneAddress& sent = *transport;
  S3ObjectStore store(std::move(transport), client_clock_, options);
  ASSERT_TRUE(store.Put("a b/c", AsBytes("x")).ok());
  EXPECT_EQ(AsText(store.Get("a b/c").value()), "x");
  EXPECT_EQ(ListAll(store, "a ")->size(), 1U);
  EXPECT_EQ(sent.hosts.front(), "strict-bucket.s3.example:9000");
  EXPECT_THAT(server_->service().violations(), IsEmpty());
}

TEST_F(S3ObjectStoreTest, AbsentBatchDeleteIsReplacedBySingleOnes) {
  StrictS3Options strict;
  strict.has_batch_delete = false;
  Start(strict);
  const auto store = Open();
  const std::vector<std::string> keys = {"a", "b", "c"};
  for (const std::string& key : keys) ASSERT_TRUE(store->Put(key, AsBytes("x")).ok());
  const int64_t before = server_->requests();
  ASSERT_TRUE(store->DeleteMany(keys).ok());
  EXPECT_EQ(server_->requests() - before, 1 + 3);
  ASSERT_TRUE(store->DeleteMany(keys).ok());
  EXPECT_EQ(server_->requests() - before, 1 + 3 + 3);  // it does not ask again
  EXPECT_TRUE(ListAll(Inside(), "")->empty());
}

TEST_F(S3ObjectStoreTest, BusyIsUnavailableAndHasNoEffect) {
  Start();
  Fault({.refuse = 1});
  const auto store = Open();
  EXPECT_EQ(store->Put("k", AsBytes("x")).code(), StatusCode::kUnavailable);
  EXPECT_EQ(store->Put("k", Bytes(kPart + 1)).code(), StatusCode::kUnavailable);
  EXPECT_EQ(store->Get("k").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(store->Head("k").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(store->List("", "", 1).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(ListAll(Inside(), "")->empty());
}

TEST_F(S3ObjectStoreTest, LostReplyOfACreateIsUnavailableAfterTheEffect) {
  Start();
  Fault({.lose_reply = 1});
  const ByteView part = AsBytes("x");
  const auto store = Open();
  EXPECT_EQ(store->Put("k", std::span(&part, 1), {.if_absent = true}).code(),
            StatusCode::kUnavailable);
  EXPECT_TRUE(Inside().Get("k").ok());
  EXPECT_EQ(server_->requests(), 1);  // it was not sent twice
}

TEST_F(S3ObjectStoreTest, CutBodyIsUnavailableNeverShort) {
  Start();
  ASSERT_TRUE(Inside().Put("k", Bytes(1'000'000)).ok());
  Fault({.cut_body = 1});
  EXPECT_EQ(Open()->Get("k").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Open()->Get("k", ByteRange{5, 900'000}).status().code(), StatusCode::kUnavailable);
}

TEST_F(S3ObjectStoreTest, StaleConnectionsAreNotSeenByTheCaller) {
  Start();
  Fault({.stale_close = 1});
  const auto store = Open();
  for (int i = 0; i < 20; ++i) {
    const Status put = store->Put("k", AsBytes("body " + std::to_string(i)));
    ASSERT_TRUE(put.ok()) << put.ToString();
  }
  EXPECT_EQ(AsText(Inside().Get("k").value()), "body 19");
}

TEST_F(S3ObjectStoreTest, RefusedCreateInPartsLeavesNoUpload) {
  Start();
  const auto store = Open();
  ASSERT_TRUE(store->Put("k", AsBytes("first")).ok());
  const Bytes large(kPart + 1);
  const ByteView part(large);
  EXPECT_EQ(store->Put("k", std::span(&part, 1), {.if_absent = true}).code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(server_->service().open_uploads(), 0U);
  EXPECT_EQ(AsText(Inside().Get("k").value()), "first");
}

TEST_F(S3ObjectStoreTest, OneRequestPerCall) {
  Start();
  const auto store = Open();
  int64_t before = 0;
  const auto requests = [&] {
    return server_->requests() - std::exchange(before, server_->requests());
  };
  ASSERT_TRUE(store->Put("k", AsBytes("x")).ok());
  EXPECT_EQ(requests(), 1);
  ASSERT_TRUE(store->Get("k").ok());
  ASSERT_TRUE(store->Get("k", ByteRange{0, 1}).ok());
  EXPECT_EQ(requests(), 2);
  // Once the bucket was seen, a poll for what is not there yet is one request as well.
  EXPECT_FALSE(store->Get("absent").ok());
  EXPECT_FALSE(store->Head("absent").ok());
  EXPECT_EQ(requests(), 2);
  ASSERT_TRUE(store->Put("k", Bytes(2 * kPart + 1)).ok());
  EXPECT_EQ(requests(), 1 + 3 + 1);
  EXPECT_LE(server_->connections(), 3);  // a connection is reused a moment after its answer
}

TEST_F(S3ObjectStoreTest, UnreachableEndpointIsNamed) {
  Start();
  const S3Options options = Options();
  server_.reset();
  const Status status = Open(options)->Get("k").status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr(options.endpoint));
}

TEST_F(S3ObjectStoreTest, AnswersThatAreNotS3AreErrorsNotCrashes) {
  S3Options options;
  options.endpoint = "http://host";
  options.bucket = "bucket";
  options.credentials = {.access_key = "a", .secret_key = "s", .session_token = ""};
  options.part_bytes = kPart;
  for (const int code : {100, 200, 204, 206, 302, 404, 416, 500, 999}) {
    for (const std::string body : {"", "<html>hello</html>", "<Error>", "<Error><Code/></Error>"}) {
      HttpResponse response;
      response.status = code;
      response.body = ToBytes(body);
      S3ObjectStore store(std::make_unique<Canned>(response), client_clock_, options);
      EXPECT_FALSE(store.List("", "", 1).ok()) << code << body;
      EXPECT_FALSE(store.Head("k").ok()) << code << body;
      EXPECT_FALSE(store.Put("k", Bytes(kPart + 1)).ok()) << code << body;
      (void)store.Get("k", ByteRange{1, 1});
      (void)store.Delete("k");
      const std::vector<std::string> keys = {"k"};
      (void)store.DeleteMany(keys);
    }
  }
}

TEST_F(S3ObjectStoreTest, TheStrictServiceNoticesBrokenRules) {
  Start();
  // The stand-in is worth something only if it can fail; a request with a body other than signed:
  StrictS3Request request{.method = "PUT",
                          .target = "/strict-bucket/k",
                          .fields = {{"Host", "h"}, {"Content-Length", "1"}},
                          .body = "x"};
  EXPECT_EQ(server_->service().Handle(request).status, 403);
  request.target = "/strict-bucket/a b";
  EXPECT_EQ(server_->service().Handle(request).status, 400);
  request.fields.pop_back();
  EXPECT_EQ(server_->service().Handle(request).status, 411);
  EXPECT_THAT(server_->service().violations(),
              ElementsAre(HasSubstr("no signature"), HasSubstr("not encoded"),
                          HasSubstr("without Content-Length")));
}

}  // namespace
}  // namespace lambdadnn
