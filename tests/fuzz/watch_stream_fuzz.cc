// SPDX-License-Identifier: Apache-2.0
// Any bytes, cut anywhere: a watch stream gives the same events however the network cuts it, and an
// error is one of the two that the header names. The first byte says how long the pieces are.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "operator/kube/watch_decoder.h"

namespace lambdadnn {
namespace {

struct Outcome {
  StatusCode code = StatusCode::kOk;
  std::vector<WatchEvent> events;
};

Outcome Decode(ByteView stream, size_t piece) {
  WatchDecoder decoder;
  Outcome outcome;
  while (!stream.empty() && outcome.code == StatusCode::kOk) {
    const ByteView next = stream.first(std::min(piece, stream.size()));
    stream = stream.subspan(next.size());
    outcome.code = decoder.Append(next, &outcome.events).code();
  }
  LDNN_CHECK(outcome.code == StatusCode::kOk || outcome.code == StatusCode::kDataLoss ||
                 outcome.code == StatusCode::kResourceExhausted,
             "code of a watch's error");
  return outcome;
}

}  // namespace
}  // namespace lambdadnn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  if (size == 0) return 0;
  const auto stream = ByteView(reinterpret_cast<const std::byte*>(data), size).subspan(1);
  const Outcome whole = Decode(stream, std::max<size_t>(1, stream.size()));
  const Outcome pieces = Decode(stream, size_t{1} + data[0] % 16);
  LDNN_CHECK(whole.code == pieces.code, "the same end");
  LDNN_CHECK(whole.events.size() == pieces.events.size(), "as many events");
  for (size_t i = 0; i < whole.events.size(); ++i) {
    LDNN_CHECK(whole.events[i].kind == pieces.events[i].kind &&
                   whole.events[i].object == pieces.events[i].object,
               "the same events");
  }
  return 0;
}
