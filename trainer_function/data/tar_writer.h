// SPDX-License-Identifier: Apache-2.0
// The bytes of a tar archive (POSIX ustar) of plain files, the same for the same files: no times,
// no owners.
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace lambdadnn {

class TarWriter {
 public:
  // kInvalidArgument for a name that a header does not hold (100 bytes, or 255 split at a '/').
  Status Add(std::string_view name, std::string_view contents);
  // The archive, with its end mark; this one is empty then.
  std::string Finish();
  size_t size() const { return archive_.size(); }

 private:
  std::string archive_;
};

}  // namespace lambdadnn
