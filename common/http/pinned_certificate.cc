// SPDX-License-Identifier: Apache-2.0
#include "common/http/pinned_certificate.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "common/http/pem.h"

namespace lambdadnn {
namespace {

constexpr const char* kCurve = "P-256";
constexpr int kSerialBits = 127;
constexpr long kVersion3 = 2;  // as X.509 counts
constexpr size_t kMaxNameBytes = 64;
// Dates do not count; the last is how RFC 5280 writes that there is no end.
constexpr const char* kBegin = "19700101000000Z";
constexpr const char* kEnd = "99991231235959Z";

using BigNumber = std::unique_ptr<BIGNUM, OpensslFreer<BIGNUM, BN_free>>;

bool SetSerial(X509* certificate) {
  const BigNumber serial(BN_new());
  return serial != nullptr &&
         BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool SetName(X509* certificate, const std::string& name) {
  X509_NAME* const subject = X509_get_subject_name(certificate);
  const std::string shown = name.substr(0, kMaxNameBytes);
  return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(shown.data()),
                                    static_cast<int>(shown.size()), -1, 0) == 1 &&
         X509_set_issuer_name(certificate, subject) == 1;
}

bool SetDates(X509* certificate) {
  return ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), kBegin) == 1 &&
         ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), kEnd) == 1;
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : "";
}

Result<Certificate> ReadOne(const std::string& pem) {
  std::vector<Certificate> certificates = ReadCertificates(pem);
  if (certificates.empty()) {
    return InvalidArgumentError("is not PEM text with a certificate (-----BEGIN CERTIFICATE-----)");
  }
  return std::move(certificates.front());
}

}  // namespace

Result<TlsIdentity> MakeTlsIdentity(const std::string& name) {
  const PrivateKey key(EVP_EC_gen(kCurve));
  const Certificate certificate(X509_new());
  const bool made = key != nullptr && certificate != nullptr &&
                    X509_set_version(certificate.get(), kVersion3) == 1 &&
                    SetSerial(certificate.get()) && SetName(certificate.get(), name) &&
                    SetDates(certificate.get()) &&
                    X509_set_pubkey(certificate.get(), key.get()) == 1 &&
                    X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0;
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  const bool written = made && PEM_write_bio_X509(certificate_text.get(), certificate.get()) == 1 &&
                       PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0,
                                                nullptr, nullptr) == 1;
  ERR_clear_error();
  if (!written) {
    return InternalError("OpenSSL made no certificate for '" + name +
                         "'; see whether its configuration allows the curve " + kCurve);
  }
  return TlsIdentity{TextOf(certificate_text.get()), TextOf(key_text.get())};
}

Status CheckTlsIdentity(const TlsIdentity& identity) {
  const Result<Certificate> certificate = ReadOne(identity.certificate);
  if (!certificate.ok()) {
    return InvalidArgumentError("the certificate " + certificate.status().message());
  }
  const PrivateKey key = ReadPrivateKey(identity.private_key);
  if (key == nullptr) {
    return InvalidArgumentError(
        "the key is not PEM text with a private key without passphrase "
        "(-----BEGIN PRIVATE KEY-----)");
  }
  if (BelongTogether(certificate->get(), key.get())) return OkStatus();
  return InvalidArgumentError(
      "the key does not belong to the certificate; give the pair that was made together");
}

Result<std::string> CertificateDigest(const std::string& pem) {
  const Result<Certificate> certificate = ReadOne(pem);
  if (!certificate.ok()) {
    return InvalidArgumentError("the certificate " + certificate.status().message());
  }
  return DigestOf(certificate->get());
}

}  // namespace lambdadnn
