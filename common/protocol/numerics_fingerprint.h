// SPDX-License-Identifier: Apache-2.0
// Numerics fingerprint of a function: its instruction set and its LibTorch with BLAS, as `GET
// /readyz` reports them (docs/formats.md). They determine the bits of the result beside plan and
// seed, so a plan pins them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lambdadnn {

// The longest values that the schema of status.plan allows.
inline constexpr size_t kMaxIsaBytes = 64;
inline constexpr size_t kMaxLibtorchBytes = 200;

// Empty = unknown, as for a function without LibTorch.
struct NumericsFingerprint {
  std::string isa;       // "avx2"
  std::string libtorch;  // "1.13.1, OpenBLAS 0.3.21 ... Haswell": its version and BLAS
  friend bool operator==(const NumericsFingerprint&, const NumericsFingerprint&) = default;
};

// One line of JSON, with its newline.
std::string EncodeFingerprint(const NumericsFingerprint& fingerprint);
// Total: any other text, and a field that is no text or too long, gives an empty value.
NumericsFingerprint DecodeFingerprint(std::string_view text);
// For messages: "avx2 and LibTorch 1.13.1, ..."
std::string DescribeFingerprint(const NumericsFingerprint& fingerprint);

}  // namespace lambdadnn
