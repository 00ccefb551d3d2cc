// SPDX-License-Identifier: Apache-2.0
// Tar archives for tests, with headers as right or wrong as a test wants them.
#pragma once

#include <cstdio>
#include <string>

namespace lambdadnn {

struct TarHeader {
  std::string name;
  char kind = '0';
  std::string size = {};    // as it stands there; empty = that of the contents, in octal digits
  std::string prefix = {};  // of a long name
  std::string link = {};
};

inline std::string TarBlocks(std::string contents) {
  contents.resize((contents.size() + 511) / 512 * 512);
  return contents;
}

// A header and its contents.
inline std::string TarEntry(const TarHeader& header, const std::string& contents) {
  std::string block(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  char size[16];
  std::snprintf(size, sizeof size, "%011zo", contents.size());
  put(0, header.name.substr(0, 100));
  put(100, "0000644");
  put(124, header.size.empty() ? std::string(size) : header.size);
  put(148, "        ");
  block[156] = header.kind;
  put(157, header.link);
  put(257, std::string("ustar\0", 6) + "00");
  put(345, header.prefix);
  unsigned sum = 0;
  for (const char byte : block) sum += static_cast<unsigned char>(byte);
  char checksum[16];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  put(148, std::string(checksum, 7));
  return block + TarBlocks(contents);
}

inline std::string TarFile(const std::string& name, const std::string& contents) {
  return TarEntry({name}, contents);
}

inline std::string TarEnd() { return std::string(1024, '\0'); }

// "LENGTH KEY=VALUE\n", whose length counts itself.
inline std::string PaxRecord(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

}  // namespace lambdadnn
