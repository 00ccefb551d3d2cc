// SPDX-License-Identifier: Apache-2.0
// Frames of the peer channel as one piece.
#pragma once

#include "common/base/bytes.h"
#include "trainer_function/peer/frame.h"
#include "trainer_function/peer/network.h"

namespace lambdadnn {

inline Bytes WholeOf(const SharedFrame& frame) {
  Bytes whole = *frame.begin;
  whole.insert(whole.end(), frame.rest.bytes.begin(), frame.rest.bytes.end());
  return whole;
}

// An object's header and payload.
inline Bytes EncodeObjectFrame(ByteView header, ByteView payload) {
  return WholeOf({std::make_shared<const Bytes>(BeginObjectFrame(header, payload.size())),
                  SharedView(payload)});
}

}  // namespace lambdadnn
