// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <string_view>

#include "common/base/check.h"

namespace lambdadnn {

std::string ToHex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  LDNN_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
             "OpenSSL cannot compute a digest");
}

void Sha256::Add(ByteView bytes) {
  LDNN_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1,
             "OpenSSL cannot compute a digest");
}

std::string Sha256::Hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  LDNN_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1,
             "OpenSSL cannot compute a digest");
  return ToHex({reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace lambdadnn
