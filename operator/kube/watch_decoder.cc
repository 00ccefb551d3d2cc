// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/watch_decoder.h"

#include <array>
#include <optional>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

std::optional<WatchEvent::Kind> KindOf(std::string_view type) {
  using Kind = WatchEvent::Kind;
  constexpr std::array<std::pair<std::string_view, Kind>, 5> kKinds = {
      {{"ADDED", Kind::kAdded},
       {"MODIFIED", Kind::kModified},
       {"DELETED", Kind::kDeleted},
       {"BOOKMARK", Kind::kBookmark},
       {"ERROR", Kind::kError}}};
  for (const auto& [name, kind] : kKinds) {
    if (name == type) return kind;
  }
  return std::nullopt;
}

Status NoEvent(std::string_view line) {
  constexpr size_t kShown = 120;
  return DataLossError("a watch sent what is no event: " + std::string(line.substr(0, kShown)));
}

}  // namespace

Status WatchDecoder::Append(ByteView bytes, std::vector<WatchEvent>* events) {
  std::string_view text = AsText(bytes);
  for (;;) {
    const size_t end = text.find('\n');
    const std::string_view part = text.substr(0, end);
    if (line_.size() + part.size() > kMaxLineBytes) {
      return ResourceExhaustedError("a watch sent a line of more than " +
                                    std::to_string(kMaxLineBytes) + " bytes");
    }
    if (end == std::string_view::npos) {
      line_ += part;
      return OkStatus();
    }
    // A whole line within one piece, the usual case, is not copied.
    Status status;
    if (line_.empty()) {
      status = Decode(part, events);
    } else {
      line_ += part;
      status = Decode(line_, events);
      line_.clear();
    }
    LDNN_RETURN_IF_ERROR(status);
    text.remove_prefix(end + 1);
  }
}

Status WatchDecoder::Decode(std::string_view line, std::vector<WatchEvent>* events) {
  if (Trim(line).empty()) return OkStatus();
  Result<Json> json = ParseJson(line, {.bytes = kMaxLineBytes, .cut_deep = true});
  if (!json.ok() || !json->is_object()) return NoEvent(line);
  const auto type = json->find("type");
  const auto object = json->find("object");
  if (type == json->end() || !type->is_string() || object == json->end() || !object->is_object()) {
    return NoEvent(line);
  }
  const std::optional<WatchEvent::Kind> kind = KindOf(type->get_ref<const std::string&>());
  // A type of later servers is no reason to lose what comes after it.
  if (kind) events->push_back({*kind, std::move(*object)});
  return OkStatus();
}

}  // namespace lambdadnn
