// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/safetensors.h"

#include <algorithm>
#include <limits>

#include "common/json/dump_json.h"
#include "common/json/json_reader.h"

namespace lambdadnn {
namespace {

constexpr size_t kLengthBytes = 8;
// Readers of other programs refuse longer headers.
constexpr uint64_t kMaxHeaderBytes = 100 * 1000 * 1000;
constexpr size_t kAlignment = 8;
constexpr std::string_view kMetadata = "__metadata__";

Status Bad(const std::string& what) { return InvalidArgumentError("safetensors file: " + what); }

// Product of the dimensions, or -1 when it does not fit.
int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0) return -1;
    if (dimension != 0 && elements > std::numeric_limits<int64_t>::max() / 16 / dimension)
      return -1;
    elements *= dimension;
  }
  return elements;
}

Result<ParameterInfo> ReadTensor(const std::string& name, const Json& json) {
  std::vector<FieldError> errors;
  JsonReader reader(json, name, &errors);
  std::string type;
  std::vector<int64_t> offsets;
  ParameterInfo info;
  info.name = name;
  reader.Required("dtype", &type);
  reader.Required("shape", &info.shape);
  reader.Required("data_offsets", &offsets);
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  if (type != "F32") return Bad("tensor " + name + " has dtype " + type + "; only F32 is read");
  info.size = ElementsOf(info.shape);
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  if (offsets.size() != 2 || info.size < 0 || offsets[0] < 0 || offsets[0] % kFloat != 0 ||
      offsets[1] < offsets[0] || offsets[1] - offsets[0] != info.size * kFloat) {
    return Bad("tensor " + name + ": shape and data_offsets do not fit");
  }
  info.offset = offsets[0] / kFloat;
  return info;
}

Status ReadHeader(std::string_view text, SafetensorsFile* file) {
  auto parsed = ParseJson(text, {.bytes = kMaxHeaderBytes});
  if (!parsed.ok()) return Bad("header is " + parsed.status().message());
  if (!parsed->is_object()) return Bad("header is not a map of tensors");
  for (const auto& [name, value] : parsed->items()) {
    if (name == kMetadata) {
      if (!value.is_object()) return Bad("__metadata__ is not a map");
      for (const auto& [key, item] : value.items()) {
        if (!item.is_string()) return Bad("__metadata__." + key + " is not text");
        file->metadata[key] = item.get<std::string>();
      }
      continue;
    }
    LDNN_ASSIGN_OR_RETURN(ParameterInfo info, ReadTensor(name, value));
    file->manifest.push_back(std::move(info));
  }
  return OkStatus();
}

}  // namespace

std::string EncodeSafetensors(const ParameterManifest& manifest, std::span<const float> flat,
                              const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[std::string(kMetadata)] = metadata;
  for (const ParameterInfo& info : manifest) {
    const auto begin = static_cast<uint64_t>(info.offset) * sizeof(float);
    const uint64_t end = begin + static_cast<uint64_t>(info.size) * sizeof(float);
    header[info.name] = {{"dtype", "F32"}, {"shape", info.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = DumpJson(header);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string file(kLengthBytes, '\0');
  StoreLittleEndian<uint64_t>(std::as_writable_bytes(std::span(file)), 0, text.size());
  file += text;
  file += AsText(AsBytes(flat));
  return file;
}

Result<SafetensorsFile> DecodeSafetensors(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) return Bad("shorter than its 8-byte length");
  const auto length = LoadLittleEndian<uint64_t>(AsBytes(bytes), 0);
  if (length > kMaxHeaderBytes || length > bytes.size() - kLengthBytes) {
    return Bad("the header's length is beyond the file's end");
  }
  SafetensorsFile file;
  LDNN_RETURN_IF_ERROR(ReadHeader(bytes.substr(kLengthBytes, length), &file));
  std::sort(file.manifest.begin(), file.manifest.end(), [](const auto& a, const auto& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.size < b.size;
  });
  int64_t next = 0;
  for (const ParameterInfo& info : file.manifest) {
    if (info.offset != next) return Bad("tensor " + info.name + " leaves a gap or overlaps");
    next += info.size;
  }
  const std::string_view data = bytes.substr(kLengthBytes + length);
  if (data.size() != static_cast<uint64_t>(next) * sizeof(float)) {
    return Bad("has " + std::to_string(data.size()) + " bytes of data, its header says " +
               std::to_string(static_cast<uint64_t>(next) * sizeof(float)));
  }
  file.flat.resize(static_cast<size_t>(next));
  if (next > 0) std::memcpy(file.flat.data(), data.data(), data.size());
  return file;
}

}  // namespace lambdadnn
