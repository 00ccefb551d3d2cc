// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/object_store.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// Bytes of the well-formed UTF-8 sequence at the front of `text`, or 0 when there is none
// (overlong forms, surrogates and values above U+10FFFF are none).
size_t Utf8SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if (lead == 0xE0 && second < 0xA0) return 0;
  if (lead == 0xED && second > 0x9F) return 0;
  if (lead == 0xF0 && second < 0x90) return 0;
  if (lead == 0xF4 && second > 0x8F) return 0;
  return length;
}

// Nearly every key is, and every request validates one: visible characters of ASCII, in segments
// that are not empty and do not begin with a dot.
bool IsPlain(std::string_view key) {
  char before = '/';
  for (const char byte : key) {
    if (byte < 0x20 || byte == 0x7F) return false;
    if (before == '/' && (byte == '/' || byte == '.')) return false;
    before = byte;
  }
  return before != '/';
}

Status BadKey(std::string_view key, std::string_view rule) {
  constexpr size_t kShown = 80;
  std::string shown;
  for (const char c : key.substr(0, kShown)) {
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  }
  if (key.size() > kShown) shown += "...";
  return InvalidArgumentError("object key '" + shown + "' " + std::string(rule));
}

}  // namespace

Status ValidateKey(std::string_view key) {
  if (key.empty()) return InvalidArgumentError("an object key must not be empty");
  if (key.size() > kMaxKeyBytes) {
    return BadKey(key, "is longer than " + std::to_string(kMaxKeyBytes) + " bytes");
  }
  if (IsPlain(key)) return OkStatus();
  for (size_t i = 0; i < key.size();) {
    const auto byte = static_cast<unsigned char>(key[i]);
    if (byte < 0x20 || byte == 0x7F) {
      return BadKey(key, "has a control character at byte " + std::to_string(i));
    }
    const size_t length = Utf8SequenceLength(key.substr(i));
    if (length == 0) return BadKey(key, "is not UTF-8 at byte " + std::to_string(i));
    i += length;
  }
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('/', begin), key.size());
    const std::string_view segment = key.substr(begin, end - begin);
    if (segment.empty()) {
      return BadKey(key, begin == 0 ? "begins with '/'" : "has an empty segment between '/'");
    }
    if (segment == "." || segment == "..") return BadKey(key, "has a segment '.' or '..'");
    begin = end + 1;
  }
  return OkStatus();
}

Status ValidateListLimit(int limit) {
  if (limit >= 1 && limit <= kMaxListLimit) return OkStatus();
  return InvalidArgumentError("a list of " + std::to_string(limit) +
                              " objects was asked for; the limit is 1 to " +
                              std::to_string(kMaxListLimit));
}

Result<ByteRange> ClipRange(std::string_view key, ByteRange range, uint64_t size) {
  if (range.offset > size) {
    return OutOfRangeError("object '" + std::string(key) + "' has " + std::to_string(size) +
                           " bytes; a range from byte " + std::to_string(range.offset) +
                           " was asked for");
  }
  range.length = std::min(range.length, size - range.offset);
  return range;
}

Status ObjectStore::DeleteMany(std::span<const std::string> keys) {
  for (const std::string& key : keys) LDNN_RETURN_IF_ERROR(Delete(key));
  return OkStatus();
}

Result<Bytes> GetAtMost(ObjectStore& store, std::string_view key, uint64_t max_bytes) {
  LDNN_ASSIGN_OR_RETURN(Bytes bytes, store.Get(key, ByteRange{0, max_bytes + 1}));
  if (bytes.size() <= max_bytes) return bytes;
  return OutOfRangeError("object '" + std::string(key) + "' has more than the " +
                         std::to_string(max_bytes) + " bytes that are read");
}

Result<std::vector<ObjectInfo>> ListAll(ObjectStore& store, std::string_view prefix) {
  std::vector<ObjectInfo> all;
  std::string start_after;
  do {
    LDNN_ASSIGN_OR_RETURN(ObjectList page, store.List(prefix, start_after, kMaxListLimit));
    std::move(page.objects.begin(), page.objects.end(), std::back_inserter(all));
    start_after = std::move(page.next_start_after);
  } while (!start_after.empty());
  return all;
}

Result<int64_t> DeletePrefix(ObjectStore& store, std::string_view prefix) {
  int64_t deleted = 0;
  std::string start_after;
  do {
    LDNN_ASSIGN_OR_RETURN(ObjectList page, store.List(prefix, start_after, kMaxListLimit));
    std::vector<std::string> keys;
    keys.reserve(page.objects.size());
    for (ObjectInfo& object : page.objects) keys.push_back(std::move(object.key));
    if (!keys.empty()) LDNN_RETURN_IF_ERROR(store.DeleteMany(keys));
    deleted += static_cast<int64_t>(keys.size());
    start_after = std::move(page.next_start_after);
  } while (!start_after.empty());
  return deleted;
}

}  // namespace lambdadnn
