// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/peer_key.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "common/base/check.h"

namespace lambdadnn {

PeerSecret HmacOf(ByteView key, ByteView bytes) {
  PeerSecret digest{};
  unsigned length = 0;
  LDNN_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                  reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                  reinterpret_cast<unsigned char*>(digest.data()), &length) != nullptr &&
                 length == digest.size(),
             "OpenSSL cannot compute an HMAC");
  return digest;
}

bool IsSameSecret(ByteView a, ByteView b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

PeerKeys DerivePeerKeys(std::string_view job_key) {
  LDNN_CHECK(!job_key.empty(), "a job's key is never empty");
  const ByteView key = AsBytes(job_key);
  return {HmacOf(key, AsBytes("LDNP 1 handshake")), HmacOf(key, AsBytes("LDNP 1 tls"))};
}

}  // namespace lambdadnn
