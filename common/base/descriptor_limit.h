// SPDX-License-Identifier: Apache-2.0
// How many files and sockets this process may hold open.
#pragma once

#include <cstdint>

namespace lambdadnn {

// Raises the soft limit to the hard one, which needs no right; the limit then in force. Shells and
// service managers start programs with a soft limit of 1,024 for the sake of select(), which
// nothing here uses.
int64_t RaiseDescriptorLimit();
// Descriptors open now; 0 where /proc does not say.
int64_t OpenDescriptors();

}  // namespace lambdadnn
