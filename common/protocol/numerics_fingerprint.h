// SPDX-License-Identifier: Apache-2.0
// What a function computes with, as it says at `GET /readyz` (docs/formats.md): what decides the
// bits beside the plan and the seed, and what a plan pins.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lambdadnn {

// As long as status.plan has room for.
inline constexpr size_t kMaxIsaBytes = 64;
inline constexpr size_t kMaxLibtorchBytes = 200;

// Empty = nothing is said of it, as by a function without LibTorch.
struct NumericsFingerprint {
  std::string isa;       // "avx2"
  std::string libtorch;  // "1.13.1, OpenBLAS 0.3.21 ... Haswell": its version and BLAS
  friend bool operator==(const NumericsFingerprint&, const NumericsFingerprint&) = default;
};

// One line of JSON, with its newline.
std::string EncodeFingerprint(const NumericsFingerprint& kernels);
// Total: of any other text, and of a field that is no text or too long, nothing is said.
NumericsFingerprint DecodeFingerprint(std::string_view text);
// For messages: "avx2 and LibTorch 1.13.1, ..."
std::string DescribeFingerprint(const NumericsFingerprint& kernels);

}  // namespace lambdadnn
