// SPDX-License-Identifier: Apache-2.0
#include "common/http/tls_material.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <mutex>
#include <vector>

#include "common/http/pem.h"

namespace lambdadnn {
namespace {

using Store = std::unique_ptr<X509_STORE, OpensslFreer<X509_STORE, X509_STORE_free>>;

class OpensslMaterial final : public TlsMaterial {
 public:
  Status Read(const HttpTransportOptions& options) {
    use_system_ = options.ca_file.empty() && options.ca_pem.empty();
    LDNN_RETURN_IF_ERROR(ReadAuthorities(options));
    if (options.client_certificate_pem.empty() && options.client_key_pem.empty()) {
      return OkStatus();
    }
    return ReadIdentity(options);
  }

  void Install(ssl_ctx_st* context) override {
    // The system's authorities are many: only when TLS is first spoken.
    if (use_system_) std::call_once(once_, [&] { X509_STORE_set_default_paths(store_.get()); });
    SSL_CTX_set1_cert_store(context, store_.get());
    if (chain_.empty()) return;
    SSL_CTX_use_certificate(context, chain_.front().get());
    for (size_t i = 1; i < chain_.size(); ++i) SSL_CTX_add1_chain_cert(context, chain_[i].get());
    SSL_CTX_use_PrivateKey(context, key_.get());
  }

 private:
  Status ReadAuthorities(const HttpTransportOptions& options) {
    LDNN_CHECK(store_ != nullptr, "no memory for certificates");
    if (!options.ca_file.empty() &&
        X509_STORE_load_file(store_.get(), options.ca_file.c_str()) != 1) {
      ERR_clear_error();
      return InvalidArgumentError("the file of certificate authorities " + options.ca_file +
                                  " cannot be read; give a PEM file with at least one certificate");
    }
    if (options.ca_pem.empty()) return OkStatus();
    const std::vector<Certificate> authorities = ReadCertificates(options.ca_pem);
    if (authorities.empty()) {
      return InvalidArgumentError(
          "the certificate authorities given as text hold no certificate; give PEM text "
          "(-----BEGIN CERTIFICATE-----)");
    }
    for (const Certificate& authority : authorities) {
      X509_STORE_add_cert(store_.get(), authority.get());
    }
    return OkStatus();
  }

  Status ReadIdentity(const HttpTransportOptions& options) {
    chain_ = ReadCertificates(options.client_certificate_pem);
    if (chain_.empty()) {
      return InvalidArgumentError(
          "the client certificate is not PEM text with a certificate; check client-certificate");
    }
    key_ = ReadPrivateKey(options.client_key_pem);
    if (key_ == nullptr) {
      return InvalidArgumentError(
          "the client key is not PEM text with a private key without passphrase; check client-key");
    }
    if (BelongTogether(chain_.front().get(), key_.get())) return OkStatus();
    return InvalidArgumentError(
        "the client key does not belong to the client certificate; give the pair that was issued "
        "together");
  }

  bool use_system_ = true;
  std::once_flag once_;
  const Store store_{X509_STORE_new()};
  std::vector<Certificate> chain_;  // the client's own first
  PrivateKey key_;
};

}  // namespace

Result<std::shared_ptr<TlsMaterial>> TlsMaterial::Load(const HttpTransportOptions& options) {
  const auto material = std::make_shared<OpensslMaterial>();
  LDNN_RETURN_IF_ERROR(material->Read(options));
  return std::shared_ptr<TlsMaterial>(material);
}

}  // namespace lambdadnn
