// SPDX-License-Identifier: Apache-2.0
// Any text: slice requests and slice lines decode to what encodes again, or are kInvalidArgument.
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/protocol/slice_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto request = DecodeSliceRequest(text);
  if (request.ok()) {
    const std::string encoded = EncodeSliceRequest(*request);
    const auto again = DecodeSliceRequest(encoded);
    LDNN_CHECK(again.ok() && EncodeSliceRequest(*again) == encoded, "a request encodes again");
  } else {
    LDNN_CHECK(request.status().code() == StatusCode::kInvalidArgument,
               request.status().ToString());
  }
  const auto line = DecodeSliceLine(text);
  LDNN_CHECK(line.ok() || line.status().code() == StatusCode::kInvalidArgument,
             line.status().ToString());
  return 0;
}
