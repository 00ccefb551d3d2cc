// SPDX-License-Identifier: Apache-2.0
// YAML text as JSON values, with the line of every field, so that diagnostics can point at it. The
// one place that knows the YAML library.
//
// Scalars mean what kubectl takes them for: plain true/yes/on and false/no/off are booleans, plain
// numbers are numbers, quoted scalars are text. Aliases are expanded (within limits); merge keys,
// tags and duplicate keys are errors. JSON is YAML, so it is read too.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json/json_reader.h"

namespace lambdadnn {

// What an input may cost: a manifest is a page or two.
inline constexpr size_t kMaxYamlBytes = size_t{1} << 20;
inline constexpr size_t kMaxYamlNodes = 100'000;  // after aliases are expanded
inline constexpr size_t kMaxYamlDepth = 64;

struct YamlDocument {
  Json value;
  int line = 1;  // of its first content
  // "spec.training.epochs" or "spec.aggregation.layers[1]" -> line from 1.
  std::map<std::string, int, std::less<>> lines;

  // The line of `path`, or of its nearest ancestor that is there.
  int LineOf(std::string_view path) const;
};

struct YamlError {
  int line = 1;
  int column = 1;
  std::string message;
};

struct YamlParseResult {
  std::vector<YamlDocument> documents;  // those without content left out
  std::optional<YamlError> error;       // then documents is empty
};

YamlParseResult ParseYaml(std::string_view text);

}  // namespace lambdadnn
