// SPDX-License-Identifier: Apache-2.0
// SHA-256 of what comes piece by piece; of what is there at once, Sha256Hex (sigv4.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/base/bytes.h"

struct evp_md_ctx_st;  // OpenSSL's

namespace lambdadnn {

// Two lower-case digits for each byte.
std::string ToHex(std::string_view bytes);

class Sha256 {
 public:
  Sha256();
  void Add(ByteView bytes);
  // Lower-case hexadecimal of all that was added; once.
  std::string Hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace lambdadnn
