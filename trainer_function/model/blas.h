// SPDX-License-Identifier: Apache-2.0
// Which BLAS the process has loaded. LibTorch from Debian calls whatever libblas.so.3 points to;
// the reference implementation makes linear layers 13 times slower than OpenBLAS.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lambdadnn {

// "OpenBLAS 0.3.21 … Haswell" with the kind of processor that its kernels are for, "reference
// BLAS", "BLAS libmkl_rt.so.2" or "built in" where LibTorch brings its own (upstream's has MKL
// inside). Two processes with the same name load the same kernels.
std::string BlasName();
// The same with the path of its library: "OpenBLAS 0.3.21 … (/usr/lib/…/libblas.so.3)".
std::string BlasDescription();
// What to tell the user, once, when the BLAS is a slow one.
std::optional<std::string> BlasWarning();
// The part of it that is of an OpenBLAS with this configuration ("OpenBLAS 0.3.21 … Prescott …") on
// a processor for which these kernels of it are the fastest; empty = its oldest ones.
std::optional<std::string> KernelsWarning(std::string_view openblas, std::string_view fastest);

}  // namespace lambdadnn
