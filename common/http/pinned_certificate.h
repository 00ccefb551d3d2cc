// SPDX-License-Identifier: Apache-2.0
// Certificates that clients know before they connect: the client compares what the server shows
// with the digest that it was told (pinning). No authority, no host name and no date counts, so
// that neither a cluster's authority nor its clocks can get in the way. Thread-safe, without state.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/base/tls_identity.h"

namespace lambdadnn {

// A new key of the curve P-256 and a certificate that it signs itself, without an end. `name` is
// its common name, for people, of at most 64 bytes.
Result<TlsIdentity> MakeTlsIdentity(const std::string& name);
// kInvalidArgument: the certificate or the key cannot be read, or they are not of one pair.
Status CheckTlsIdentity(const TlsIdentity& identity);
// SHA-256 of the first certificate of a PEM text, as hexadecimal text in lower case.
Result<std::string> CertificateDigest(const std::string& pem);

}  // namespace lambdadnn
