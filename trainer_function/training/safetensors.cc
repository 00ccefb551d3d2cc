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

// A tensor of the header and where its data lies.
struct Entry {
  StateTensor tensor;
  int64_t begin = 0;
  int64_t end = 0;
};

Result<Entry> ReadEntry(const std::string& name, const Json& json) {
  std::vector<FieldError> errors;
  JsonReader reader(json, name, &errors);
  std::string type;
  std::vector<int64_t> offsets;
  Entry entry;
  entry.tensor.name = name;
  reader.Required("dtype", &type);
  reader.Required("shape", &entry.tensor.shape);
  reader.Required("data_offsets", &offsets);
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  const auto known = FindEnum<ElementType>(type);
  if (!known) return Bad("tensor " + name + " has the unknown dtype " + type);
  entry.tensor.type = *known;
  const int64_t elements = ElementsOf(entry.tensor.shape);
  if (offsets.size() != 2 || elements < 0 || offsets[0] < 0 || offsets[1] < offsets[0] ||
      offsets[1] - offsets[0] != elements * ElementBytes(*known)) {
    return Bad("tensor " + name + ": shape and data_offsets do not fit");
  }
  entry.begin = offsets[0];
  entry.end = offsets[1];
  return entry;
}

Result<std::vector<Entry>> ReadHeader(std::string_view text,
                                      std::map<std::string, std::string>* metadata) {
  std::vector<Entry> entries;
  auto parsed = ParseJson(text, {.bytes = kMaxHeaderBytes});
  if (!parsed.ok()) return Bad("header is " + parsed.status().message());
  if (!parsed->is_object()) return Bad("header is not a map of tensors");
  for (const auto& [name, value] : parsed->items()) {
    if (name == kMetadata) {
      if (!value.is_object()) return Bad("__metadata__ is not a map");
      for (const auto& [key, item] : value.items()) {
        if (!item.is_string()) return Bad("__metadata__." + key + " is not text");
        (*metadata)[key] = item.get<std::string>();
      }
      continue;
    }
    LDNN_ASSIGN_OR_RETURN(Entry entry, ReadEntry(name, value));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::string EncodeSafetensors(std::span<const StateTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[std::string(kMetadata)] = metadata;
  std::vector<const StateTensor*> order;
  for (const StateTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const StateTensor* a, const StateTensor* b) {
    return ElementBytes(a->type) > ElementBytes(b->type);
  });
  size_t end = 0;
  for (const StateTensor* const tensor : order) {
    const size_t begin = end;
    end += tensor->data.size();
    header[tensor->name] = {{"dtype", EnumName(tensor->type)},
                            {"shape", tensor->shape},
                            {"data_offsets", {begin, end}}};
  }
  std::string text = DumpJson(header);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string file(kLengthBytes, '\0');
  StoreLittleEndian<uint64_t>(std::as_writable_bytes(std::span(file)), 0, text.size());
  file.reserve(file.size() + text.size() + end);
  file += text;
  for (const StateTensor* const tensor : order) file += AsText(tensor->data);
  return file;
}

Result<SafetensorsFile> DecodeSafetensors(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) return Bad("shorter than its 8-byte length");
  const auto length = LoadLittleEndian<uint64_t>(AsBytes(bytes), 0);
  if (length > kMaxHeaderBytes || length > bytes.size() - kLengthBytes) {
    return Bad("the header's length is beyond the file's end");
  }
  SafetensorsFile file;
  LDNN_ASSIGN_OR_RETURN(std::vector<Entry> entries,
                        ReadHeader(bytes.substr(kLengthBytes, length), &file.metadata));
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  int64_t next = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != next)
      return Bad("tensor " + entry.tensor.name + " leaves a gap or overlaps");
    next = entry.end;
  }
  const ByteView data = AsBytes(bytes.substr(kLengthBytes + length));
  if (data.size() != static_cast<uint64_t>(next)) {
    return Bad("has " + std::to_string(data.size()) + " bytes of data, its header says " +
               std::to_string(next));
  }
  for (Entry& entry : entries) {
    const ByteView part = data.subspan(static_cast<size_t>(entry.begin),
                                       static_cast<size_t>(entry.end - entry.begin));
    entry.tensor.data.assign(part.begin(), part.end());
    file.tensors.push_back(std::move(entry.tensor));
  }
  return file;
}

}  // namespace lambdadnn
