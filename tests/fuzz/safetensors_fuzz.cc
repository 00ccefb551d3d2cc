// SPDX-License-Identifier: Apache-2.0
// Any bytes: a safetensors file decodes to tensors that encode to an equal file, or is refused.
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "trainer_function/training/safetensors.h"

namespace lambdadnn {
namespace {

void Try(std::string_view text) {
  const auto file = DecodeSafetensors(text);
  if (!file.ok()) {
    LDNN_CHECK(file.status().code() == StatusCode::kInvalidArgument, file.status().ToString());
    return;
  }
  const auto again = DecodeSafetensors(EncodeSafetensors(file->tensors, file->metadata));
  LDNN_CHECK(again.ok() && again->tensors.size() == file->tensors.size() &&
                 again->metadata == file->metadata,
             "a file that decodes encodes");
}

}  // namespace
}  // namespace lambdadnn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Try(text);
  // The same as a header alone, without data: past the length that guards the parser.
  std::string wrapped(sizeof(uint64_t), '\0');
  StoreLittleEndian<uint64_t>(std::as_writable_bytes(std::span(wrapped)), 0, size);
  wrapped += text;
  Try(wrapped);
  return 0;
}
