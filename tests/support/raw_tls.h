// SPDX-License-Identifier: Apache-2.0
// A bare client and a bare server of TLS for tests, on OpenSSL alone, so that they share no code
// with what they test.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "common/base/tls_identity.h"
#include "tests/support/raw_http.h"
#include "tests/support/raw_server.h"

namespace lambdadnn {

// One request to 127.0.0.1 on a connection of its own, whatever certificate is shown. Status 0: no
// handshake with at most this version (TLS1_2_VERSION, TLS1_3_VERSION), or no answer.
RawReply FetchTls(int port, std::string_view method_and_target, std::string_view key = {},
                  std::string_view body = {}, int most_version = TLS1_3_VERSION);

// What a TlsScript has seen. Thread-safe.
class TlsLog {
 public:
  struct Entry {
    bool handshake = false;
    uint64_t handshake_bytes = 0;  // of both directions
    std::string received;          // decrypted, until the peer closed
  };
  void Add(Entry entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  std::vector<Entry> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

// A server of at most this version: makes the handshake, reads until the peer closes, answers
// nothing.
RawServer::Script TlsScript(const TlsIdentity& identity, TlsLog& log,
                            int most_version = TLS1_3_VERSION);

}  // namespace lambdadnn
