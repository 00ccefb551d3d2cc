// SPDX-License-Identifier: Apache-2.0
// The regular files in a tar archive (POSIX ustar and pax, and GNU's long names), in their order,
// found by reading headers: of long members the contents are passed over. Nothing in a header is
// trusted: sizes are checked against the archive's, and an archive that has anything but files and
// folders, or names that leave its folder, is refused.
//
// Errors are kInvalidArgument naming the archive and the member.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trainer_function/data/byte_stream.h"

namespace lambdadnn {

// A header's bytes; contents are filled up with zeros to a multiple of these.
inline constexpr uint64_t kTarBlock = 512;

struct TarMember {
  std::string name;     // without a leading "./"
  uint64_t offset = 0;  // of its contents in the archive
  uint64_t bytes = 0;
};

// `name` as an error may show it: at most 200 bytes, and no control characters.
std::string ShownName(std::string_view name);

class TarReader {
 public:
  explicit TarReader(DataFile file) : file_(std::move(file)) {}

  // The next file; none at the archive's end. An archive without its end mark (blocks of zeros) is
  // cut: members may be missing.
  Result<std::optional<TarMember>> Next();
  // All of the member's bytes; kInvalidArgument for more than `limit`.
  Result<Bytes> Contents(const TarMember& member, uint64_t limit);

 private:
  // What a pax header or GNU's long name says of the member after it.
  struct Extension {
    std::optional<std::string> name;
    std::optional<uint64_t> bytes;
  };

  // These bytes, through window_. They lie within the archive.
  Result<ByteView> Read(uint64_t offset, uint64_t length);
  Result<TarMember> ParseHeader(ByteView header, const Extension& extension) const;
  Status TakePax(const TarMember& member, Extension* extension);
  Status Refuse(std::string_view member, const std::string& what) const;

  DataFile file_;
  uint64_t position_ = 0;  // of the next header
  Bytes window_;
  uint64_t window_offset_ = 0;
};

}  // namespace lambdadnn
