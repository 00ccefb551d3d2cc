// SPDX-License-Identifier: Apache-2.0
// Which BLAS the process has loaded. LibTorch from Debian calls whatever libblas.so.3 points to;
// the reference implementation makes linear layers 13 times slower than OpenBLAS.
#pragma once

#include <optional>
#include <string>

namespace lambdadnn {

// "OpenBLAS 0.3.21 … (/usr/lib/…/libblas.so.3)", "reference BLAS (…)" or "built in" where LibTorch
// brings its own (upstream's has MKL inside).
std::string BlasDescription();
// What to tell the user, once, when the BLAS is a slow one.
std::optional<std::string> BlasWarning();

}  // namespace lambdadnn
