// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/numerics_fingerprint.h"

#include "common/protocol/codec_internal.h"

namespace lambdadnn {
namespace {

std::string TextOf(const Json& json, const char* field, size_t most_bytes) {
  const auto found = json.find(field);
  if (found == json.end() || !found->is_string()) return "";
  std::string text = found->get<std::string>();
  return text.size() <= most_bytes ? text : "";
}

}  // namespace

std::string EncodeFingerprint(const NumericsFingerprint& fingerprint) {
  return codec::Dump({{"isa", fingerprint.isa}, {"libtorch", fingerprint.libtorch}}) + "\n";
}

NumericsFingerprint DecodeFingerprint(std::string_view text) {
  const Result<Json> json = ParseJson(text);
  if (!json.ok() || !json->is_object()) return {};
  return {TextOf(*json, "isa", kMaxIsaBytes), TextOf(*json, "libtorch", kMaxLibtorchBytes)};
}

std::string DescribeFingerprint(const NumericsFingerprint& fingerprint) {
  const std::string isa = fingerprint.isa.empty() ? "an unknown instruction set" : fingerprint.isa;
  return isa + " and " +
         (fingerprint.libtorch.empty() ? "an unknown LibTorch"
                                       : "LibTorch " + fingerprint.libtorch);
}

}  // namespace lambdadnn
