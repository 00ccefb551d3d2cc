// SPDX-License-Identifier: Apache-2.0
// The conformance suite on the real S3 servers that scripts/test_servers.sh builds, and what only
// they can tell.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "common/base/files.h"
#include "common/base/runtime.h"
#include "common/objectstore/open_store.h"
#include "common/objectstore/prefix_object_store.h"
#include "common/objectstore/s3_object_store.h"
#include "tests/conformance/object_store_conformance.h"
#include "tests/support/paths.h"
#include "tests/support/s3_test_server.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::Not;

// Its SKIP_RETURN_CODE.
constexpr int kSkipped = 77;
constexpr uint64_t kPartBytes = 5 << 20;  // the smallest that servers take

SystemClock& TheClock() {
  static SystemClock clock;
  return clock;
}

// Started at first use, one of each for the whole program.
S3TestServer* ServerNamed(const std::string& name) {
  static std::map<std::string, std::unique_ptr<S3TestServer>> servers;
  auto& server = servers[name];
  if (server == nullptr) {
    auto started = S3TestServer::Start({.name = name,
                                        .bucket = "lambdadnn-test",
                                        .certificate_file = "",
                                        .key_file = "",
                                        .ca_file = ""});
    if (!started.ok()) {
      std::fprintf(stderr, "%s: %s\n",
                   WithoutServers() ? "NOT RUN, as LAMBDADNN_WITHOUT_SERVERS=1 allows"
                                    : "FAILED to run the tests of real servers",
                   started.status().message().c_str());
      std::exit(WithoutServers() ? kSkipped : 1);
    }
    server = *std::move(started);
  }
  return server.get();
}

std::unique_ptr<S3ObjectStore> OpenS3(S3Options options) {
  options.part_bytes = kPartBytes;
  return std::make_unique<S3ObjectStore>(
      NewDataTransport({.inactivity_seconds = 30, .ca_file = ""}).value(), TheClock(),
      std::move(options));
}

StoreUnderTest RealStore(const std::string& name, bool key_below_key, int most_races_lost) {
  return {.name = name,
          .open =
              [name] {
                static std::atomic<int> next{0};
                return std::make_unique<PrefixObjectStore>(
                    OpenS3(ServerNamed(name)->store_options()), "t" + std::to_string(next++) + "/");
              },
          .open_missing_bucket =
              [name] {
                S3Options options = ServerNamed(name)->store_options();
                options.bucket = "no-such-bucket";
                return OpenS3(options);
              },
          .part_bytes = kPartBytes,
          .key_below_key = key_below_key,
          .most_races_lost = most_races_lost};
}

INSTANTIATE_TEST_SUITE_P(Real, ObjectStoreConformance,
                         testing::Values(RealStore("minio", false, 0),
                                         RealStore("versitygw", false, 20)),
                         StoreName);

class RealS3 : public testing::TestWithParam<const char*> {
 protected:
  S3Options Options() const { return ServerNamed(GetParam())->store_options(); }
};

TEST_P(RealS3, WrongSecretKeyIsSaidWithoutShowingIt) {
  S3Options options = Options();
  options.credentials.secret_key = "not-the-secret";
  const auto store = OpenS3(options);
  for (const Status& status : {store->Put("key", AsBytes("x")), store->Get("key").status(),
                               store->Head("key").status(), store->List("", "", 10).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kUnauthenticated) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("secret key"));
    EXPECT_THAT(status.message(), Not(HasSubstr("not-the-secret")));
  }
}

TEST_P(RealS3, UnknownAccessKeyIsSaid) {
  S3Options options = Options();
  options.credentials.access_key = "nobody";
  const Status status = OpenS3(options)->Get("key").status();
  EXPECT_EQ(status.code(), StatusCode::kUnauthenticated) << status.ToString();
  EXPECT_THAT(status.message(), HasSubstr("access key"));
}

class LateClock final : public Clock {
 public:
  Instant Now() override { return TheClock().Now(); }
  WallTime Wall() override { return TheClock().Wall() - FromSeconds(3600); }
  void SleepFor(Duration duration) override { TheClock().SleepFor(duration); }
};

TEST_P(RealS3, ASkewedClockCorrectsItself) {
  LateClock clock;
  S3ObjectStore store(NewDataTransport({.inactivity_seconds = 30, .ca_file = ""}).value(), clock,
                      Options());
  for (const Status& status : {store.Put("late-key", AsBytes("x")), store.Head("late-key").status(),
                               store.Get("late-key").status(), store.Delete("late-key")}) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST(RealTls, ObjectsTravelUnderAPrivateAuthority) {
  (void)ServerNamed("versitygw");  // says what is missing
  const std::string folder = MakeTempDir();
  const std::string command =
      "cd " + folder +
      " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1"
      " -subj /CN=test-authority -keyout ca.key -out ca.pem 2>/dev/null"
      " && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=store"
      " -keyout key.pem -out request.pem 2>/dev/null"
      " && printf 'subjectAltName=IP:127.0.0.1' > names"
      " && openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 1"
      " -extfile names -out cert.pem 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto server = S3TestServer::Start({.name = "versitygw",
                                           .bucket = "tls-bucket",
                                           .certificate_file = folder + "/cert.pem",
                                           .key_file = folder + "/key.pem",
                                           .ca_file = folder + "/ca.pem"});
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  SystemClock clock;
  SystemRandom random;
  ThreadExecutor executor;
  Runtime runtime{clock, executor, random};
  StoreConfig config;
  config.uri = "s3://tls-bucket/some/prefix";
  config.endpoint = (*server)->store_options().endpoint;
  config.credentials = (*server)->store_options().credentials;
  config.ca_file = folder + "/ca.pem";
  const auto store = OpenStore(config, runtime).value();
  const Bytes large(7'000'000, std::byte{7});
  ASSERT_TRUE(store->Put("large", large).ok());
  EXPECT_TRUE(store->Get("large").value() == large);
  EXPECT_EQ(ListAll(*store, "")->front().key, "large");

  config.ca_file = "";
  const Status refused = OpenStore(config, runtime).value()->Get("large").status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused.ToString();
  EXPECT_THAT(refused.message(), HasSubstr("certificate authority"));
}

INSTANTIATE_TEST_SUITE_P(Servers, RealS3, testing::Values("minio", "versitygw"));

}  // namespace
}  // namespace lambdadnn
