// SPDX-License-Identifier: Apache-2.0
// How keys become paths below the root of a FilesystemObjectStore, and back. Pure functions.
//
// An ordinary key is its own path, so that a folder of data files is a store and results are files
// with the names one expects. What a file system cannot hold is escaped with '%':
//   * a '%' before one of "2fst+" is written "%25"; all others stay as they are;
//   * a segment of more than 120 bytes becomes folders of 120 bytes each, whose names end in "%+",
//     and a rest, "%s" behind it if that is "." or ".." (a name on disk has at most 255 bytes);
//   * an object whose name is taken by a folder ("a" beside "a/b") is the file "a%f";
//   * "%tmp" in the root holds files that are being written, and "%tmp/wakeups"
//     (base/wakeup_row.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lambdadnn {

inline constexpr std::string_view kTemporaryFolder = "%tmp";
inline constexpr std::string_view kWakeupsFile = "wakeups";
inline constexpr std::string_view kBesideFolderSuffix = "%f";

// The path of a valid key's file, relative to the root.
std::string KeyToPath(std::string_view key);

// What a file name or folder name below the root stands for.
struct DecodedName {
  std::string text;            // of the key, without '/'
  bool beside_folder = false;  // file: its key is the name of a folder as well
  bool continued = false;      // folder: the segment goes on in the names inside
};
// nullopt for a name that KeyToPath never makes (a file of another program): the store ignores it.
std::optional<DecodedName> DecodeName(std::string_view name);

}  // namespace lambdadnn
