// SPDX-License-Identifier: Apache-2.0
// Any text: a checkpoint manifest decodes to what it says or is kDataLoss. The input is also tried
// with a valid checksum put into it.
#include <cstddef>
#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/check.h"
#include "common/checkpoint_index/checkpoint_index.h"
#include "common/json/json_reader.h"

namespace lambdadnn {
namespace {

void Try(std::string_view text) {
  const auto manifest = DecodeManifest(text);
  if (!manifest.ok()) {
    LDNN_CHECK(manifest.status().code() == StatusCode::kDataLoss, manifest.status().ToString());
    return;
  }
  const auto again = DecodeManifest(EncodeManifest(*manifest));
  LDNN_CHECK(again.ok() && *again == *manifest, "a manifest that decodes encodes");
}

}  // namespace
}  // namespace lambdadnn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Try(text);
  auto json = ParseJson(text);
  if (!json.ok() || !json->is_object()) return 0;
  json->erase("checksum");
  const std::string body = json->dump(-1, ' ', false, Json::error_handler_t::replace);
  (*json)["checksum"] = Hex64(Xxh3(AsBytes(body)));
  Try(json->dump(-1, ' ', false, Json::error_handler_t::replace));
  return 0;
}
