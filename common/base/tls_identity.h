// SPDX-License-Identifier: Apache-2.0
// By what a server is known over TLS: a certificate and its private key, as PEM text. The key is
// never logged and never part of a message.
#pragma once

#include <string>

namespace lambdadnn {

struct TlsIdentity {
  std::string certificate;
  std::string private_key;
  friend bool operator==(const TlsIdentity&, const TlsIdentity&) = default;
};

}  // namespace lambdadnn
