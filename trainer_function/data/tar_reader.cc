// SPDX-License-Identifier: Apache-2.0
// Headers as IEEE Std 1003.1 (pax: "ustar Interchange Format", "pax Header Block") and the manual
// of GNU tar ("Basic Tar Format") describe them.
#include "trainer_function/data/tar_reader.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

// Names and pax headers beyond this are none that a file system could have made.
constexpr uint64_t kMaxExtensionBytes = 64 << 10;
constexpr size_t kMaxShownBytes = 200;
// A request for the next header takes about as long as these bytes on the way to it, which are
// therefore read, too.
constexpr uint64_t kPassedOver = 256 << 10;
constexpr uint64_t kWindowBytes = 1 << 20;
// Behind a gap: a header, and a small member with the header after it.
constexpr uint64_t kSmallWindowBytes = 4 << 10;

// Fields of a header: offset and length.
struct Field {
  size_t offset;
  size_t length;
};
constexpr Field kName = {0, 100};
constexpr Field kSize = {124, 12};
constexpr Field kChecksum = {148, 8};
constexpr size_t kKind = 156;
constexpr Field kMagic = {257, 5};
constexpr size_t kVersionAt = 263;  // "00" of POSIX; a space and a zero of GNU
constexpr Field kPrefix = {345, 155};

// Up to the first zero.
std::string_view Text(ByteView header, Field field) {
  const std::string_view whole = AsText(header.subspan(field.offset, field.length));
  return whole.substr(0, whole.find('\0'));
}

// Octal digits, with spaces around; or GNU's binary numbers, whose first bit is set.
std::optional<uint64_t> Number(ByteView header, Field field) {
  const ByteView bytes = header.subspan(field.offset, field.length);
  const auto first = std::to_integer<unsigned>(bytes[0]);
  uint64_t value = 0;
  if ((first & 0x80) != 0) {
    if (first != 0x80) return std::nullopt;  // negative, or beyond 2^88
    for (const std::byte byte : bytes.subspan(1)) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | std::to_integer<uint64_t>(byte);
    }
    return value;
  }
  const std::string_view digits = Trim(Text(header, field));
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value << 3 | static_cast<uint64_t>(digit - '0');
  }
  return digits.empty() ? std::nullopt : std::optional(value);
}

bool ChecksumFits(ByteView header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < header.size(); ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.length;
    sum += own ? uint64_t{' '} : std::to_integer<uint64_t>(header[i]);
  }
  return Number(header, kChecksum) == sum;
}

bool IsZero(ByteView block) {
  return std::all_of(block.begin(), block.end(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

std::string NameOf(ByteView header) {
  std::string name(Text(header, kName));
  const bool posix = Text(header, kMagic) == "ustar" && header[kVersionAt] == std::byte{'0'};
  const std::string_view prefix = posix ? Text(header, kPrefix) : std::string_view();
  return prefix.empty() ? name : std::string(prefix) + "/" + name;
}

std::string WithoutDot(std::string name) {
  while (name.starts_with("./")) name.erase(0, 2);
  return name;
}

// Why a member of this name is refused; empty = it is not.
std::string_view Unsafe(std::string_view name) {
  if (name.empty()) return "has no name";
  if (name.starts_with('/')) return "has an absolute path";
  for (const std::string& segment : Split(name, '/')) {
    if (segment == "..") return "has a path that leaves the archive's folder (..)";
  }
  return "";
}

std::string_view KindName(char kind) {
  switch (kind) {
    case '1':
      return "a hard link";
    case '2':
      return "a symbolic link";
    case '3':
    case '4':
      return "a device";
    case '6':
      return "a pipe";
    case 'S':
      return "a sparse file";
    default:
      return "of a kind that is not known";
  }
}

}  // namespace

std::string ShownName(std::string_view name) {
  std::string shown;
  for (const char letter : name.substr(0, kMaxShownBytes)) {
    const auto code = static_cast<unsigned char>(letter);
    shown += code < 0x20 || code == 0x7f ? '?' : letter;
  }
  return name.size() > kMaxShownBytes ? shown + "…" : shown;
}

Status TarReader::Refuse(std::string_view member, const std::string& what) const {
  return InvalidArgumentError(file_.name() + ", member " + ShownName(member) + ": " + what);
}

Result<ByteView> TarReader::Read(uint64_t offset, uint64_t length) {
  const uint64_t window_end = window_offset_ + window_.size();
  if (offset < window_offset_ || offset + length > window_end) {
    const bool near = offset >= window_offset_ && offset <= window_end + kPassedOver;
    const uint64_t wanted = std::max(length, near ? kWindowBytes : kSmallWindowBytes);
    LDNN_ASSIGN_OR_RETURN(window_, file_.Read(offset, std::min(wanted, file_.size() - offset)));
    window_offset_ = offset;
  }
  return ByteView(window_).subspan(offset - window_offset_, length);
}

Result<Bytes> TarReader::Contents(const TarMember& member, uint64_t limit) {
  if (member.bytes > limit) {
    return Refuse(member.name, "has " + std::to_string(member.bytes) + " bytes, and at most " +
                                   std::to_string(limit) + " are read of such a member");
  }
  LDNN_ASSIGN_OR_RETURN(const ByteView bytes, Read(member.offset, member.bytes));
  return Bytes(bytes.begin(), bytes.end());
}

Result<TarMember> TarReader::ParseHeader(ByteView header, const Extension& extension) const {
  TarMember member;
  member.offset = position_ + kTarBlock;
  member.name = WithoutDot(extension.name.value_or(NameOf(header)));
  if (!ChecksumFits(header)) {
    return InvalidArgumentError(file_.name() + " is damaged or no tar archive: at byte " +
                                std::to_string(position_) +
                                " is no header of a member (its checksum is wrong); copy the file "
                                "again");
  }
  const std::optional<uint64_t> bytes = extension.bytes ? extension.bytes : Number(header, kSize);
  if (!bytes) return Refuse(member.name, "its size is no number; make the archive again");
  if (*bytes > file_.size() - member.offset) {
    return Refuse(member.name, "is cut: it has " + std::to_string(*bytes) + " bytes, and " +
                                   std::to_string(file_.size() - member.offset) +
                                   " follow in the archive; copy the file again");
  }
  member.bytes = *bytes;
  return member;
}

// Records "LENGTH KEY=VALUE\n", whose length counts all of it.
Status TarReader::TakePax(const TarMember& member, Extension* extension) {
  LDNN_ASSIGN_OR_RETURN(const Bytes contents, Contents(member, kMaxExtensionBytes));
  std::string_view rest = AsText(contents);
  while (!rest.empty()) {
    const size_t space = rest.find(' ');
    const auto length = ParseInteger(rest.substr(0, std::min(space, rest.size())));
    const size_t equals = rest.find('=');
    if (!length || *length < 1 || static_cast<uint64_t>(*length) > rest.size() ||
        equals == std::string_view::npos || equals < space ||
        equals >= static_cast<size_t>(*length) || rest[static_cast<size_t>(*length) - 1] != '\n') {
      return Refuse(member.name, "its extended header is broken; make the archive again");
    }
    const auto end = static_cast<size_t>(*length);
    const std::string_view key = rest.substr(space + 1, equals - space - 1);
    const std::string_view value = rest.substr(equals + 1, end - equals - 2);
    if (key == "path") extension->name = std::string(value);
    if (key == "size") {
      const auto bytes = ParseInteger(value);
      if (!bytes || *bytes < 0) {
        return Refuse(member.name, "its size is no number; make the archive again");
      }
      extension->bytes = static_cast<uint64_t>(*bytes);
    }
    if (key.starts_with("GNU.sparse")) {
      return Refuse(member.name, "is a sparse file; make the archive again without --sparse");
    }
    rest.remove_prefix(end);
  }
  return OkStatus();
}

Result<std::optional<TarMember>> TarReader::Next() {
  Extension extension;
  while (true) {
    if (file_.size() - position_ < kTarBlock) {
      return InvalidArgumentError(file_.name() +
                                  " is cut or no tar archive: it ends without the blocks of zeros "
                                  "that mark an archive's end; copy the file again");
    }
    LDNN_ASSIGN_OR_RETURN(const ByteView view, Read(position_, kTarBlock));
    const Bytes header(view.begin(), view.end());
    if (IsZero(header)) return std::optional<TarMember>();
    const char kind = static_cast<char>(header[kKind]);
    const bool extends = kind == 'x' || kind == 'g' || kind == 'L' || kind == 'K';
    LDNN_ASSIGN_OR_RETURN(TarMember member, ParseHeader(header, extends ? Extension() : extension));
    const uint64_t left = file_.size() - member.offset;
    position_ =
        member.offset + std::min((member.bytes + kTarBlock - 1) / kTarBlock * kTarBlock, left);
    if (kind == 'x') {
      LDNN_RETURN_IF_ERROR(TakePax(member, &extension));
    } else if (kind == 'L') {
      LDNN_ASSIGN_OR_RETURN(const Bytes name, Contents(member, kMaxExtensionBytes));
      const std::string_view text = AsText(name);
      extension.name = std::string(text.substr(0, text.find('\0')));
    } else if (!extends) {
      const bool is_top = kind == '5' && member.name.empty();  // "./"
      if (const std::string_view why = Unsafe(member.name); !why.empty() && !is_top) {
        return Refuse(member.name, std::string(why) + "; make the archive again without it");
      }
      const bool is_file = kind == '0' || kind == '\0' || kind == '7';
      // Before POSIX a folder was a file whose name ends in '/'.
      const bool is_folder = kind == '5' || (is_file && member.name.ends_with('/'));
      if (!is_file && !is_folder) {
        return Refuse(member.name, "is " + std::string(KindName(kind)) +
                                       "; make the archive again of files alone");
      }
      if (!is_folder) return std::optional(std::move(member));
      extension = Extension();
    }
  }
}

}  // namespace lambdadnn
