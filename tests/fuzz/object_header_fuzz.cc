// SPDX-License-Identifier: Apache-2.0
// Any bytes: the header decodes to what encodes to the same bytes, or is refused. The input is also
// tried with a valid checksum, so that the fuzzer gets past it.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/base/check.h"
#include "common/protocol/object_header.h"

namespace lambdadnn {
namespace {

void Try(ByteView bytes) {
  const auto header = DecodeHeader(bytes);
  if (!header.ok()) {
    LDNN_CHECK(header.status().code() == StatusCode::kDataLoss, header.status().ToString());
    return;
  }
  std::array<std::byte, kObjectHeaderBytes> encoded;
  EncodeHeader(*header, encoded);
  const auto again = DecodeHeader(encoded);
  LDNN_CHECK(again.ok() && again->elements == header->elements && again->job == header->job,
             "a header that decodes encodes");
  (void)CheckPayload(*header, bytes.subspan(kObjectHeaderBytes));
}

}  // namespace
}  // namespace lambdadnn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  const ByteView bytes = std::as_bytes(std::span(data, size));
  Try(bytes);
  if (size < kObjectHeaderBytes) return 0;
  Bytes sealed(bytes.begin(), bytes.end());
  constexpr size_t kSealAt = kObjectHeaderBytes - sizeof(uint64_t);
  StoreLittleEndian(MutableByteView(sealed), kSealAt, Xxh3(ByteView(sealed).first(kSealAt)));
  Try(sealed);
  return 0;
}
