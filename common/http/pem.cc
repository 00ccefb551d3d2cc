// SPDX-License-Identifier: Apache-2.0
#include "common/http/pem.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>

namespace lambdadnn {
namespace {

Bio Open(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Never ask for the passphrase of a key on standard input.
int NoPassphrase(char*, int, int, void*) { return 0; }

}  // namespace

std::vector<Certificate> ReadCertificates(const std::string& pem) {
  std::vector<Certificate> certificates;
  const Bio bio = Open(pem);
  while (X509* const certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(certificate);
  }
  ERR_clear_error();
  return certificates;
}

PrivateKey ReadPrivateKey(const std::string& pem) {
  const Bio bio = Open(pem);
  PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  return key;
}

bool BelongTogether(X509* certificate, EVP_PKEY* key) {
  const bool fits = X509_check_private_key(certificate, key) == 1;
  ERR_clear_error();
  return fits;
}

std::string DigestOf(const X509* certificate) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (certificate == nullptr || X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) {
    return "";
  }
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace lambdadnn
