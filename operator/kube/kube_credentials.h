// SPDX-License-Identifier: Apache-2.0
// Credentials of requests to the API server, refreshed when due: a token file is read again every
// minute, a plugin runs again when what it printed expires, and both when the server answers 401.
// Thread-safe; Current may block for as long as a plugin runs.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/json/json_reader.h"
#include "operator/kube/kube_connection.h"

namespace lambdadnn {

struct KubeCredential {
  std::string token = "";  // without "Bearer "
  std::string client_certificate_pem = "";
  std::string client_key_pem = "";
  friend bool operator==(const KubeCredential&, const KubeCredential&) = default;
};

class KubeCredentials {
 public:
  // `clock` outlives it.
  KubeCredentials(const KubeConnection& connection, Clock& clock);

  // kUnauthenticated says what could not be read or run and what to do.
  Result<KubeCredential> Current();
  // The server refused `used`: the next Current reads or runs anew. Returns whether that can give
  // anything else.
  bool Refuse(const KubeCredential& used);

 private:
  Result<KubeCredential> Fetch();
  Result<KubeCredential> RunPlugin();

  const KubeConnection connection_;
  Clock& clock_;
  std::mutex mutex_;  // held while a plugin runs: one at a time
  std::optional<KubeCredential> cached_;
  std::optional<Instant> refresh_at_;  // nullopt: never
};

// What an exec plugin printed. kUnauthenticated: not an ExecCredential with a token or a client
// certificate. `expires` stays as it is when no time is given.
Result<KubeCredential> ParseExecCredential(std::string_view output,
                                           std::optional<WallTime>* expires);

}  // namespace lambdadnn
