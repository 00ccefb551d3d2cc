// SPDX-License-Identifier: Apache-2.0
// Certificates and keys of OpenSSL from PEM text. Private to this folder.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

namespace lambdadnn {

template <typename T, void (*kFree)(T*)>
struct OpensslFreer {
  void operator()(T* object) const { kFree(object); }
};
using Certificate = std::unique_ptr<X509, OpensslFreer<X509, X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, OpensslFreer<EVP_PKEY, EVP_PKEY_free>>;
struct BioFreer {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, BioFreer>;

// All that the text has, in its order; none when it is no PEM text.
std::vector<Certificate> ReadCertificates(const std::string& pem);
// Null: no private key, or one with a passphrase, which is never asked for.
PrivateKey ReadPrivateKey(const std::string& pem);
bool BelongTogether(X509* certificate, EVP_PKEY* key);
// SHA-256 of its DER form as hexadecimal text in lower case; "" of null.
std::string DigestOf(const X509* certificate);

}  // namespace lambdadnn
