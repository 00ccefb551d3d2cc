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
      std::fprintf(stderr, "%s\n", started.status().ToString().c_str());
      std::exit(WithoutServers() ? 0 : 1);
    }
    server = *std::move(started);
  }
  return server.get();
}

std::unique_ptr<S3ObjectStore> OpenS3(S3Options options) {
  options.part_bytes = kPartBytes;
  return std::make_unique<S3ObjectStore>(
      NewHttpTransport({.inactivity_seconds = 30, .ca_file = ""}).value(), TheClock(),
      std::move(options));
}

StoreUnderTest RealStore(const std::string& name, bool key_below_key) {
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
          .key_below_key = key_below_key};
}

INSTANTIATE_TEST_SUITE_P(Real, ObjectStoreConformance,
                         testing::Values(RealStore("minio", false), RealStore("versitygw", false)),
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

TEST_P(RealS3, SkewedClockIsSaidWithTheDifference) {
  LateClock clock;
  S3ObjectStore store(NewHttpTransport({.inactivity_seconds = 30, .ca_file = ""}).value(), clock,
                      Options());
  for (const Status& status : {store.Put("key", AsBytes("x")), store.Head("key").status()}) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("clocks"));
    EXPECT_THAT(status.message(), HasSubstr("NTP"));
  }
}

INSTANTIATE_TEST_SUITE_P(Servers, RealS3, testing::Values("minio", "versitygw"));

}  // namespace
}  // namespace lambdadnn
