// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/filesystem_layout.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// Escaped, every second byte a '%' that takes three, and with a suffix it still fits 255.
constexpr size_t kChunkBytes = 120;
constexpr std::string_view kAfterEscaped = "2fst+";
constexpr std::string_view kContinuedSuffix = "%+";
constexpr std::string_view kDotsSuffix = "%s";

bool NeedsEscape(std::string_view text, size_t i) {
  return text[i] == '%' && i + 1 < text.size() &&
         kAfterEscaped.find(text[i + 1]) != std::string_view::npos;
}

bool IsDots(std::string_view name) { return name == "." || name == ".."; }

std::string EscapeSegment(std::string_view segment) {
  std::string escaped;
  for (size_t i = 0; i < segment.size(); ++i) {
    if (NeedsEscape(segment, i)) {
      escaped += "%25";
    } else {
      escaped += segment[i];
    }
  }
  return escaped;
}

// Splits before escaping, so that no escape is cut in two.
std::string SegmentToPath(std::string_view segment) {
  std::string path;
  while (segment.size() > kChunkBytes) {
    path += EscapeSegment(segment.substr(0, kChunkBytes));
    path += kContinuedSuffix;
    path += '/';
    segment.remove_prefix(kChunkBytes);
  }
  path += EscapeSegment(segment);
  if (IsDots(segment)) path += kDotsSuffix;
  return path;
}

}  // namespace

std::string KeyToPath(std::string_view key) {
  std::string path;
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('/', begin), key.size());
    if (begin > 0) path += '/';
    path += SegmentToPath(key.substr(begin, end - begin));
    begin = end + 1;
  }
  return path;
}

std::optional<DecodedName> DecodeName(std::string_view name) {
  DecodedName decoded;
  if (name.ends_with(kBesideFolderSuffix)) {
    decoded.beside_folder = true;
    name.remove_suffix(kBesideFolderSuffix.size());
  } else if (name.ends_with(kContinuedSuffix)) {
    decoded.continued = true;
    name.remove_suffix(kContinuedSuffix.size());
  } else if (name.ends_with(kDotsSuffix)) {
    name.remove_suffix(kDotsSuffix.size());
    if (!IsDots(name)) return std::nullopt;
  }
  if (name.empty()) return std::nullopt;
  for (size_t i = 0; i < name.size(); ++i) {
    decoded.text += name[i];
    if (!NeedsEscape(name, i)) continue;
    if (name.substr(i + 1, 2) != "25") return std::nullopt;
    i += 2;
  }
  if (EscapeSegment(decoded.text) != name) return std::nullopt;
  return decoded;
}

}  // namespace lambdadnn
