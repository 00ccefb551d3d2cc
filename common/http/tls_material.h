// SPDX-License-Identifier: Apache-2.0
// CA certificates and client certificate of one transport, parsed once and shared by its TLS
// connections (reference counted). Private to this folder. Thread-safe.
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
