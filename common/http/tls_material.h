// SPDX-License-Identifier: Apache-2.0
// What TLS connections of one transport have in common, parsed once and shared by reference count:
// the authorities that are trusted and the certificate that this side shows. Private to this
// folder. Thread-safe.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "common/http/http_transport.h"

struct ssl_ctx_st;

namespace lambdadnn {

class TlsMaterial {
 public:
  // kInvalidArgument names what of the options cannot be read.
  static Result<std::shared_ptr<TlsMaterial>> Load(const HttpTransportOptions& options);
  virtual ~TlsMaterial() = default;
  // For a new connection.
  virtual void Install(ssl_ctx_st* context) = 0;
};

}  // namespace lambdadnn
