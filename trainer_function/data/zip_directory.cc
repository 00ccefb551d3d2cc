// SPDX-License-Identifier: Apache-2.0
// PKWARE's APPNOTE 6.3.9, sections 4.3.7, 4.3.12 and 4.3.16.
#include "trainer_function/data/zip_directory.h"

#include <algorithm>
#include <utility>

namespace lambdadnn {
namespace {

constexpr uint32_t kEndMagic = 0x06054b50;
constexpr uint32_t kEntryMagic = 0x02014b50;
constexpr uint32_t kLocalMagic = 0x04034b50;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kEntryBytes = 46;
constexpr uint64_t kLocalBytes = 30;
constexpr uint64_t kMaxComment = 65535;
constexpr uint64_t kMaxDirectoryBytes = 8 << 20;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;

// An archive, and how to speak of it.
struct Archive {
  const DataFile& file;
  const ZipWords& words;
};

Status Broken(const Archive& archive, const std::string& what) {
  return InvalidArgumentError(archive.file.name() + " is cut or no " + archive.words.what + ": " +
                              what + "; " + archive.words.next);
}

// Where the directory lies: offset, then size.
Result<std::pair<uint64_t, uint64_t>> FindDirectory(const Archive& archive) {
  const DataFile& file = archive.file;
  const uint64_t length = std::min(file.size(), kEndBytes + kMaxComment);
  if (length < kEndBytes) return Broken(archive, "it is too short");
  LDNN_ASSIGN_OR_RETURN(const Bytes tail, file.Read(file.size() - length, length));
  for (uint64_t at = length - kEndBytes + 1; at-- > 0;) {
    if (LoadLittleEndian<uint32_t>(tail, at) != kEndMagic) continue;
    const auto size = LoadLittleEndian<uint32_t>(tail, at + 12);
    const auto offset = LoadLittleEndian<uint32_t>(tail, at + 16);
    if (size > kMaxDirectoryBytes || offset > file.size() || size > file.size() - offset) {
      return Broken(archive, "its directory lies outside (archives beyond 4 GB are not read)");
    }
    return std::pair<uint64_t, uint64_t>(offset, size);
  }
  return Broken(archive, "it has no directory at its end");
}

std::string_view EntryName(ByteView entry) {
  return AsText(entry.subspan(kEntryBytes, LoadLittleEndian<uint16_t>(entry, 28)));
}

// The entry at `at` of the directory, whose data's place stands in the local header.
Result<ZipMember> ReadEntry(const Archive& archive, ByteView entry) {
  const DataFile& file = archive.file;
  ZipMember member;
  const auto flags = LoadLittleEndian<uint16_t>(entry, 8);
  const auto method = LoadLittleEndian<uint16_t>(entry, 10);
  member.name = std::string(EntryName(entry));
  member.part.stored_bytes = LoadLittleEndian<uint32_t>(entry, 20);
  member.unpacked_bytes = LoadLittleEndian<uint32_t>(entry, 24);
  const uint64_t local = LoadLittleEndian<uint32_t>(entry, 42);
  if ((flags & 1) != 0 || (method != kStored && method != kDeflated)) {
    return Broken(archive, "member " + member.name + " is encrypted or of an unknown compression");
  }
  LDNN_ASSIGN_OR_RETURN(const Bytes header, file.Read(local, kLocalBytes));
  if (LoadLittleEndian<uint32_t>(header, 0) != kLocalMagic) {
    return Broken(archive, "member " + member.name + " is not where the directory says");
  }
  member.part.offset = local + kLocalBytes + LoadLittleEndian<uint16_t>(header, 26) +
                       LoadLittleEndian<uint16_t>(header, 28);
  if (member.part.offset > file.size() ||
      member.part.stored_bytes > file.size() - member.part.offset ||
      (method == kStored && member.part.stored_bytes != member.unpacked_bytes)) {
    return Broken(archive, "member " + member.name + " is incomplete");
  }
  member.part.compression = method == kStored ? Compression::kNone : Compression::kRawDeflate;
  if (method == kDeflated) member.part.crc32 = LoadLittleEndian<uint32_t>(entry, 16);
  member.part.file = file;
  return member;
}

}  // namespace

Result<std::vector<ZipMember>> ListZip(const DataFile& file, const ZipWords& words,
                                       const std::function<bool(std::string_view name)>& wanted) {
  const Archive archive = {file, words};
  LDNN_ASSIGN_OR_RETURN(const auto place, FindDirectory(archive));
  LDNN_ASSIGN_OR_RETURN(const Bytes directory, file.Read(place.first, place.second));
  std::vector<ZipMember> members;
  ByteView rest = directory;
  while (rest.size() >= kEntryBytes) {
    if (LoadLittleEndian<uint32_t>(rest, 0) != kEntryMagic) break;
    const uint64_t length = kEntryBytes + LoadLittleEndian<uint16_t>(rest, 28) +
                            LoadLittleEndian<uint16_t>(rest, 30) +
                            LoadLittleEndian<uint16_t>(rest, 32);
    if (length > rest.size()) return Broken(archive, "its directory is incomplete");
    const ByteView entry = rest.first(length);
    rest = rest.subspan(length);
    if (wanted != nullptr && !wanted(EntryName(entry))) continue;
    LDNN_ASSIGN_OR_RETURN(ZipMember member, ReadEntry(archive, entry));
    members.push_back(std::move(member));
  }
  if (!rest.empty()) return Broken(archive, "its directory is incomplete");
  return members;
}

}  // namespace lambdadnn
