// SPDX-License-Identifier: Apache-2.0
#include "common/http/pinned_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(PinnedCertificate, EachIsAPairOfItsOwn) {
  const Result<TlsIdentity> one = MakeTlsIdentity("job-1");
  const Result<TlsIdentity> other = MakeTlsIdentity("job-1");
  ASSERT_TRUE(one.ok()) << one.status().ToString();
  EXPECT_TRUE(CheckTlsIdentity(*one).ok());
  EXPECT_THAT(one->certificate, StartsWith("-----BEGIN CERTIFICATE-----"));
  EXPECT_THAT(one->private_key, StartsWith("-----BEGIN PRIVATE KEY-----"));
  EXPECT_NE(CertificateDigest(one->certificate).value(),
            CertificateDigest(other->certificate).value());
}

TEST(PinnedCertificate, ALongNameIsCut) {
  EXPECT_TRUE(MakeTlsIdentity(std::string(500, 'x')).ok());
  EXPECT_TRUE(MakeTlsIdentity("x").ok());
}

// As `openssl x509 -fingerprint -sha256` prints it.
TEST(PinnedCertificate, TheDigestIsThatOfTheDerForm) {
  constexpr const char* kCertificate = R"(-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIULlVaARZzp+vNHq6FuBm+MHJuRaUwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjUxMDU4NDNaGA8yMTI2MTEwMTEwNTg0
M1owDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKH7
7NMnxIFKEdBnXzqZj7x5tzcs3mKjY38FX5XFnPW4F/8sz3Ctrbho6y6HV4dttkjX
OsOZm0VAKZkm8W7HYOmjUzBRMB0GA1UdDgQWBBRa30EweZ3qpsyq+wpsKahHy5T2
4jAfBgNVHSMEGDAWgBRa30EweZ3qpsyq+wpsKahHy5T24jAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIQDPGTkPo5rPYwIG66PjYaAZcGJ3kDNygOiW
ZyHQi07KZAIgIEILb5hFjCJiktq5B9FJGoDznnOCPmL3VHOckh4VOT4=
-----END CERTIFICATE-----
)";
  EXPECT_EQ(CertificateDigest(kCertificate).value(),
            "88c7868c229b60e85c91fd5215772f78e781e0ab4c1f389413f597e4fb6c2190");
}

TEST(PinnedCertificate, WhatIsNoPairIsRefusedWithoutShowingTheKey) {
  const TlsIdentity one = MakeTlsIdentity("one").value();
  const TlsIdentity two = MakeTlsIdentity("two").value();
  const auto refusal = [](const TlsIdentity& identity) {
    const Status status = CheckTlsIdentity(identity);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    return status.message();
  };
  const std::string cut = one.private_key.substr(0, one.private_key.size() / 2);
  EXPECT_THAT(refusal({"", one.private_key}), HasSubstr("the certificate is not PEM"));
  EXPECT_THAT(refusal({one.private_key, one.private_key}), HasSubstr("the certificate is not PEM"));
  EXPECT_THAT(refusal({one.certificate, ""}), HasSubstr("the key is not PEM"));
  EXPECT_THAT(refusal({one.certificate, cut}), HasSubstr("the key is not PEM"));
  EXPECT_THAT(refusal({one.certificate, two.private_key}), HasSubstr("does not belong"));
  for (const TlsIdentity& bad :
       {TlsIdentity{"", one.private_key}, TlsIdentity{one.certificate, cut}}) {
    EXPECT_THAT(refusal(bad), Not(HasSubstr(one.private_key.substr(40, 20))));
  }
  EXPECT_EQ(CertificateDigest("no PEM").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lambdadnn
