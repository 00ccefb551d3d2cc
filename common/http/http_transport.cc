// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_transport.h"

#include <algorithm>

namespace lambdadnn {
namespace {

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string_view FindField(const HttpFields& fields, std::string_view name) {
  for (const auto& [field, value] : fields) {
    if (std::equal(field.begin(), field.end(), name.begin(), name.end(),
                   [](char a, char b) { return LowerAscii(a) == LowerAscii(b); })) {
      return value;
    }
  }
  return {};
}

Status HttpTransportOptions::Validate() const {
  constexpr double kMaxSeconds = 86400;
  if (inactivity_seconds <= 0 || inactivity_seconds > kMaxSeconds) {
    return InvalidArgumentError("HTTP timeout of " + std::to_string(inactivity_seconds) +
                                " s; choose more than 0 and at most a day");
  }
  if (client_certificate_pem.empty() != client_key_pem.empty()) {
    return InvalidArgumentError(
        "a client certificate without its key, or a key without its "
        "certificate; give both or neither");
  }
  return OkStatus();
}

void HttpCancellation::Cancel() {
  // Under the lock: Unsubscribe promises that nothing runs after it.
  const std::lock_guard lock(mutex_);
  if (cancelled_) return;
  cancelled_ = true;
  for (const auto& [id, end] : subscribers_) end();
}

bool HttpCancellation::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

int HttpCancellation::Subscribe(std::function<void()> end) {
  const std::lock_guard lock(mutex_);
  if (cancelled_) end();
  subscribers_[next_id_] = std::move(end);
  return next_id_++;
}

void HttpCancellation::Unsubscribe(int id) {
  const std::lock_guard lock(mutex_);
  subscribers_.erase(id);
}

}  // namespace lambdadnn
