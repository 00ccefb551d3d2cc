// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/object_store.h"

#include <algorithm>

#include "common/base/utf8.h"

namespace lambdadnn {
namespace {

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

std::string Shown(std::string_view key) {
  constexpr size_t kShown = 80;
  std::string shown = "'";
  for (const char c : key.substr(0, kShown)) {
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  }
  return shown + (key.size() > kShown ? "...'" : "'");
}

Status BadKey(std::string_view key, std::string_view rule) {
  return InvalidArgumentError("object key " + Shown(key) + " " + std::string(rule));
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

Status ObjectStore::PutPieces(std::string_view key, uint64_t size, const PieceReader& read) {
  std::vector<Bytes> pieces;
  for (uint64_t offset = 0; offset < size; offset += kPieceBytes) {
    LDNN_ASSIGN_OR_RETURN(Bytes piece,
                          ReadPiece(read, {offset, std::min(kPieceBytes, size - offset)}));
    pieces.push_back(std::move(piece));
  }
  const std::vector<ByteView> views(pieces.begin(), pieces.end());
  return Put(key, views, {});
}

Result<Bytes> ReadPiece(const PieceReader& read, ByteRange range) {
  LDNN_ASSIGN_OR_RETURN(Bytes bytes, read(range));
  if (bytes.size() == range.length) return bytes;
  return DataLossError(std::to_string(bytes.size()) + " bytes came where " +
                       std::to_string(range.length) + " from byte " + std::to_string(range.offset) +
                       " on were asked for");
}

Status CheckListPage(const ObjectList& page, std::string_view prefix, std::string_view start_after,
                     int limit) {
  if (page.objects.size() > static_cast<size_t>(limit)) {
    return UnavailableError("a list of " + std::to_string(page.objects.size()) + " objects where " +
                            std::to_string(limit) + " were asked for");
  }
  std::string_view before = start_after;
  for (const ObjectInfo& object : page.objects) {
    if (!object.key.starts_with(prefix)) {
      return UnavailableError("a list of '" + std::string(prefix) + "' has " + Shown(object.key) +
                              " in it");
    }
    if (object.key <= before) {
      return UnavailableError("a list has " + Shown(object.key) + " after " + Shown(before) +
                              "; keys must ascend");
    }
    before = object.key;
  }
  if (!page.next_start_after.empty() &&
      (page.next_start_after < before || page.next_start_after == start_after)) {
    return UnavailableError("a listing continues at " + Shown(page.next_start_after) + " after " +
                            Shown(before) + "; it would never end");
  }
  return OkStatus();
}

Result<Bytes> GetBounded(ObjectStore& store, std::string_view key, uint64_t limit,
                         std::string_view what) {
  // One byte more tells a longer object from one that just fits.
  LDNN_ASSIGN_OR_RETURN(Bytes bytes, store.Get(key, ByteRange{0, limit + 1}));
  if (bytes.size() <= limit) return bytes;
  return ResourceExhaustedError("object '" + std::string(key) + "' of " + store.Describe() +
                                " is longer than the " + std::to_string(limit) + " bytes that " +
                                std::string(what) +
                                " may have; delete it if nothing of ours wrote it");
}

namespace {

// Page after page; each is checked, so that every one but the last makes progress.
Status ForEachPage(ObjectStore& store, std::string_view prefix,
                   const std::function<Status(ObjectList&)>& visit) {
  std::string start_after;
  do {
    LDNN_ASSIGN_OR_RETURN(ObjectList page, store.List(prefix, start_after, kMaxListLimit));
    const Status sound = CheckListPage(page, prefix, start_after, kMaxListLimit);
    if (!sound.ok()) return sound.WithContext(store.Describe());
    start_after = page.next_start_after;
    LDNN_RETURN_IF_ERROR(visit(page));
  } while (!start_after.empty());
  return OkStatus();
}

}  // namespace

Status ForEachObject(ObjectStore& store, std::string_view prefix, const ObjectVisitor& visit,
                     int64_t limit) {
  int64_t passed = 0;
  return ForEachPage(store, prefix, [&](ObjectList& page) -> Status {
    passed += static_cast<int64_t>(page.objects.size());
    if (passed > limit) {
      return ResourceExhaustedError(store.Describe() + " lists more than " + std::to_string(limit) +
                                    " objects under '" + std::string(prefix) +
                                    "'; name a folder with fewer, or delete what is not needed");
    }
    for (const ObjectInfo& object : page.objects) LDNN_RETURN_IF_ERROR(visit(object));
    return OkStatus();
  });
}

Result<std::vector<ObjectInfo>> ListAll(ObjectStore& store, std::string_view prefix,
                                        int64_t limit) {
  std::vector<ObjectInfo> all;
  const auto add = [&](const ObjectInfo& object) {
    all.push_back(object);
    return OkStatus();
  };
  LDNN_RETURN_IF_ERROR(ForEachObject(store, prefix, add, limit));
  return all;
}

Result<int64_t> DeletePrefix(ObjectStore& store, std::string_view prefix,
                             const std::function<bool(const ObjectInfo&)>& unless) {
  int64_t passed = 0;
  int64_t deleted = 0;
  const auto delete_page = [&](ObjectList& page) -> Status {
    passed += static_cast<int64_t>(page.objects.size());
    std::vector<std::string> keys;
    keys.reserve(page.objects.size());
    for (ObjectInfo& object : page.objects) {
      if (!unless || !unless(object)) keys.push_back(std::move(object.key));
    }
    if (!keys.empty()) LDNN_RETURN_IF_ERROR(store.DeleteMany(keys));
    deleted += static_cast<int64_t>(keys.size());
    if (passed < kMaxWalkedObjects || page.next_start_after.empty()) return OkStatus();
    return UnavailableError("deleting what " + store.Describe() + " has under '" +
                            std::string(prefix) + "': " + std::to_string(passed) +
                            " objects were listed, and there are more");
  };
  LDNN_RETURN_IF_ERROR(ForEachPage(store, prefix, delete_page));
  return deleted;
}

}  // namespace lambdadnn
