// SPDX-License-Identifier: Apache-2.0
// Slices over TLS: whom the client sends nothing. What it does over plain HTTP and over TLS alike
// is tested in beast_slice_client_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include <atomic>

#include "common/http/pem.h"
#include "common/http/pinned_certificate.h"
#include "operator/backends/beast_slice_client.h"
#include "tests/support/raw_tls.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

// As somebody may put it into the Secret with the job's key.
TlsIdentity ExpiredRsaIdentity() {
  const PrivateKey key(EVP_RSA_gen(2048));
  const Certificate certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate.get()), "19700101000000Z");
  ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate.get()), "19710101000000Z");
  X509_set_pubkey(certificate.get(), key.get());
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate_text.get(), certificate.get());
  PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {TextOf(certificate_text.get()), TextOf(key_text.get())};
}

class PinnedSliceClientTest : public testing::Test {
 protected:
  PinnedSliceClientTest() {
    options_.connect_seconds = 0.5;
    client_ = std::make_unique<BeastSliceClient>(runtime_, options_);
  }

  static SliceRequest Request(const std::string& invocation) {
    SliceRequest request;
    request.invocation = invocation;
    request.job = {"job-1", "default", "demo"};
    request.credentials = StoreCredentials{"id", "the-secret-of-the-store", ""};
    return request;
  }
  static FunctionAccess Access(const TlsIdentity& identity) {
    return {"the-job-key", CertificateDigest(identity.certificate).value()};
  }
  static Endpoint At(const RawServer& server) {
    return {.scheme = "https", .host = "127.0.0.1", .port = server.port()};
  }
  SliceView AwaitLost(const std::string& invocation) {
    for (int i = 0; i < 500; ++i) {
      for (const SliceView& view : client_->Poll("job-1")) {
        if (view.invocation == invocation && view.phase == SlicePhase::kLost) return view;
      }
      runtime_.clock.SleepFor(FromSeconds(0.01));
    }
    ADD_FAILURE() << invocation << " is not lost";
    return {};
  }
  // The server logs a connection once its peer has closed it.
  std::vector<TlsLog::Entry> AwaitLog(size_t count) {
    for (int i = 0; i < 500 && log_.entries().size() < count; ++i) {
      runtime_.clock.SleepFor(FromSeconds(0.01));
    }
    return log_.entries();
  }

  SystemRuntime runtime_;
  TlsLog log_;
  const TlsIdentity own_ = MakeTlsIdentity("job-1").value();
  BeastSliceClient::Options options_;
  std::unique_ptr<BeastSliceClient> client_;
};

TEST_F(PinnedSliceClientTest, WhoShowsAnotherCertificateIsSentNothing) {
  const TlsIdentity other = MakeTlsIdentity("job-1").value();
  const RawServer server({TlsScript(other, log_)});
  client_->Start("instance-1", At(server), Request("a"), Access(own_));
  const SliceView view = AwaitLost("a");
  EXPECT_EQ(view.error.code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(view.error.message(), HasSubstr("another certificate"));
  for (const TlsIdentity& identity : {own_, other}) {
    EXPECT_THAT(view.error.message(),
                HasSubstr(CertificateDigest(identity.certificate)->substr(0, 16)));
  }
  const auto seen = AwaitLog(1);
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_TRUE(seen[0].handshake);
  EXPECT_EQ(seen[0].received, "");
}

TEST_F(PinnedSliceClientTest, WhoIsAskedForItsFingerprintMustShowTheCertificateAsWell) {
  const TlsIdentity other = MakeTlsIdentity("job-1").value();
  const RawServer server({TlsScript(other, log_)});
  client_->AskFingerprint({"job-1", "default", "demo"}, "instance-1", At(server), Access(own_));
  std::vector<FingerprintAnswer> answers;
  for (int i = 0; i < 500 && answers.empty(); ++i) {
    answers = client_->TakeFingerprints("job-1");
    runtime_.clock.SleepFor(FromSeconds(0.01));
  }
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].instance_uid, "instance-1");
  EXPECT_EQ(answers[0].error.code(), StatusCode::kUnauthenticated);
  EXPECT_THAT(answers[0].error.message(), HasSubstr("another certificate"));
  const auto seen = AwaitLog(1);
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].received, "");
}

TEST_F(PinnedSliceClientTest, WithTheRightCertificateTheRequestComesAfterOneSmallHandshake) {
  const RawServer server({TlsScript(own_, log_)});
  options_.silence_seconds = 0.2;
  client_ = std::make_unique<BeastSliceClient>(runtime_, options_);
  client_->Start("instance-1", At(server), Request("a"), Access(own_));
  AwaitLost("a");  // it answers nothing
  const auto seen = AwaitLog(1);
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_THAT(seen[0].received, HasSubstr("Bearer the-job-key"));
  EXPECT_THAT(seen[0].received, HasSubstr("the-secret-of-the-store"));
  EXPECT_GT(seen[0].handshake_bytes, 0u);
  EXPECT_LE(seen[0].handshake_bytes, 2048u);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(PinnedSliceClientTest, NeitherDateNorAlgorithmOfTheRightCertificateCounts) {
  const TlsIdentity expired = ExpiredRsaIdentity();
  ASSERT_EQ(CheckTlsIdentity(expired), OkStatus());
  const RawServer server({TlsScript(expired, log_)});
  options_.silence_seconds = 0.2;
  client_ = std::make_unique<BeastSliceClient>(runtime_, options_);
  client_->Start("instance-1", At(server), Request("a"), Access(expired));
  AwaitLost("a");  // it answers nothing
  const auto seen = AwaitLog(1);
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_THAT(seen[0].received, HasSubstr("Bearer the-job-key"));
}

TEST_F(PinnedSliceClientTest, WithoutAKnownCertificateNobodyIsCalled) {
  const RawServer server({TlsScript(own_, log_)});
  client_->Start("instance-1", At(server), Request("a"), {"the-job-key"});
  EXPECT_EQ(AwaitLost("a").error.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(PinnedSliceClientTest, AnOlderTlsIsRefused) {
  const RawServer server({TlsScript(own_, log_, TLS1_2_VERSION)});
  client_->Start("instance-1", At(server), Request("a"), Access(own_));
  EXPECT_THAT(AwaitLost("a").error.message(), HasSubstr("setting up TLS with"));
  const auto seen = AwaitLog(1);
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_FALSE(seen[0].handshake);
}

TEST_F(PinnedSliceClientTest, WhoAnswersInPlainTextIsSentNothing) {
  std::atomic<bool> closed = false;
  std::string received;
  const RawServer server({[&](int fd) {
    Write(fd, "HTTP/1.1 200 OK\r\n\r\n");
    received = ReadRequest(fd);
    closed = true;
  }});
  client_->Start("instance-1", At(server), Request("a"), Access(own_));
  AwaitLost("a");
  for (int i = 0; i < 500 && !closed; ++i) runtime_.clock.SleepFor(FromSeconds(0.01));
  ASSERT_TRUE(closed);
  EXPECT_THAT(received, Not(HasSubstr("the-job-key")));
  EXPECT_THAT(received, Not(HasSubstr("/v1/slices")));
}

TEST_F(PinnedSliceClientTest, AHandshakeThatHangsTimesOutAndDelaysNoOther) {
  const RawServer silent({Hang()});
  // A record whose bytes come one by one.
  const RawServer dripping({[this](int fd) {
    Write(fd, std::string_view("\x16\x03\x03\x40\x00", 5));
    while (send(fd, "x", 1, MSG_NOSIGNAL) == 1) runtime_.clock.SleepFor(FromSeconds(0.02));
  }});
  const TlsIdentity other = MakeTlsIdentity("job-1").value();
  const RawServer prompt({TlsScript(other, log_)});
  options_.connect_seconds = 2;
  client_ = std::make_unique<BeastSliceClient>(runtime_, options_);
  const Instant begin = runtime_.clock.Now();
  client_->Start("instance-1", At(silent), Request("silent"), Access(own_));
  client_->Start("instance-2", At(dripping), Request("dripping"), Access(own_));
  client_->Start("instance-3", At(prompt), Request("prompt"), Access(own_));
  AwaitLost("prompt");
  EXPECT_LT(runtime_.clock.Now() - begin, FromSeconds(2)) << "it waited for the others";
  EXPECT_THAT(AwaitLost("silent").error.message(), HasSubstr("no sign of life"));
  EXPECT_GE(runtime_.clock.Now() - begin, FromSeconds(2));
  AwaitLost("dripping");
  EXPECT_LT(runtime_.clock.Now() - begin, FromSeconds(4));
}

TEST_F(PinnedSliceClientTest, ClosingDuringAHandshakeEndsIt) {
  const RawServer silent({Hang()});
  options_.connect_seconds = 60;
  client_ = std::make_unique<BeastSliceClient>(runtime_, options_);
  client_->Start("instance-1", At(silent), Request("a"), Access(own_));
  for (int i = 0; i < 500 && silent.connections() == 0; ++i)
    runtime_.clock.SleepFor(FromSeconds(0.01));
  const Instant begin = runtime_.clock.Now();
  client_->Forget("a");
  client_.reset();
  EXPECT_LT(runtime_.clock.Now() - begin, FromSeconds(10));
}

}  // namespace
}  // namespace lambdadnn
