// SPDX-License-Identifier: Apache-2.0
// Decodes a watch's bytes into events: one JSON document per line, in chunks that end anywhere.
#pragma once

#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

class WatchDecoder {
 public:
  // Appends the events that `bytes` completes. kDataLoss: what came is no watch (then the stream is
  // of no more use); the message shows the beginning of the line. kResourceExhausted: a line that
  // no API server would send.
  Status Append(ByteView bytes, std::vector<WatchEvent>* events);

  static constexpr size_t kMaxLineBytes = size_t{64} << 20;

 private:
  Status Decode(std::string_view line, std::vector<WatchEvent>* events);
  std::string line_;  // the unfinished one
};

}  // namespace lambdadnn
