// SPDX-License-Identifier: Apache-2.0
#include "common/json/json_reader.h"

#include <algorithm>
#include <cmath>

#include "common/base/text.h"
#include "common/json/unknown_field.h"
#include "common/json/unknown_value.h"

namespace lambdadnn {
namespace {

// Of the `size`th byte of `text`, counted from 1.
std::string LineAndColumn(std::string_view text, size_t size) {
  const std::string_view read = text.substr(0, size);
  const auto line = std::count(read.begin(), read.end(), '\n') + 1;
  const size_t line_begin = read.rfind('\n');
  const size_t column = read.size() - (line_begin == std::string_view::npos ? 0 : line_begin + 1);
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

Result<Json> ParseWithinLimits(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return InvalidArgumentError("not JSON at " + LineAndColumn(text, error.byte));
  } catch (const Json::exception&) {
    return InvalidArgumentError("not JSON: a number is too large");
  }
}

// Goes on from `at`, which is in no quoted text and `*depth` levels deep, to the bracket that opens
// the first level below kMaxJsonDepth, or closes it; text.size() when there is none. Exact for all
// that a parser reads before it finds that the text is no JSON.
size_t NextCrossing(std::string_view text, size_t at, size_t* depth) {
  bool in_quotes = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (in_quotes) {
      if (c == '\\') {
        ++at;
      } else if (c == '"') {
        in_quotes = false;
      }
    } else if (c == '"') {
      in_quotes = true;
    } else if (c == '[' || c == '{') {
      if (++*depth == kMaxJsonDepth + 1) return at;
    } else if ((c == ']' || c == '}') && *depth > 0) {
      if (--*depth == kMaxJsonDepth) return at;
    }
  }
  return text.size();
}

// `text` with null for each map and list below kMaxJsonDepth.
std::string CutDeep(std::string_view text) {
  std::string shallow;
  size_t depth = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t deep = NextCrossing(text, begin, &depth);
    shallow += text.substr(begin, deep - begin);
    if (deep == text.size()) break;
    const size_t end = NextCrossing(text, deep + 1, &depth);
    if (end == text.size()) break;  // not closed: no JSON either way
    shallow += "null";
    begin = end + 1;
  }
  return shallow;
}

}  // namespace

Status ToStatus(const std::vector<FieldError>& errors) {
  if (errors.empty()) return OkStatus();
  std::vector<std::string> lines;
  for (const FieldError& error : errors) {
    lines.push_back(error.path.empty() ? error.message : error.path + ": " + error.message);
  }
  return InvalidArgumentError(Join(lines, "; "));
}

JsonReader::JsonReader(const Json& json, std::string path, std::vector<FieldError>* errors)
    : json_(json), path_(std::move(path)), errors_(errors) {
  if (!json_.is_object()) errors_->push_back({path_, "must be a map of fields"});
  known_.reserve(json_.size());
}

bool JsonReader::Has(std::string_view name) const {
  if (!json_.is_object()) return false;
  const auto found = json_.find(name);
  return found != json_.end() && !found->is_null();
}

std::string JsonReader::PathOf(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void JsonReader::Report(std::string_view name, std::string message) {
  errors_->push_back({PathOf(name), std::move(message)});
}

const Json* JsonReader::Find(std::string_view name) {
  known_.emplace_back(name);
  if (!json_.is_object()) return nullptr;
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

const Json* JsonReader::Child(std::string_view name) { return Find(name); }

bool JsonReader::Missing(std::string_view name) {
  if (json_.is_object()) Report(name, "is required; add it");
  return false;
}

bool JsonReader::Decode(std::string_view name, const Json& value, bool* out) {
  if (!value.is_boolean()) {
    Report(name, "must be true or false");
    return false;
  }
  *out = value.get<bool>();
  return true;
}

bool JsonReader::Decode(std::string_view name, const Json& value, std::string* out) {
  if (!value.is_string()) {
    Report(name, "must be text; put it in quotes");
    return false;
  }
  *out = value.get<std::string>();
  return true;
}

bool JsonReader::Decode(std::string_view name, const Json& value, double* out) {
  if (value.is_number()) {
    *out = value.get<double>();
    return true;
  }
  if (value.is_string()) {
    if (const auto number = ParseDouble(value.get<std::string>())) {
      *out = *number;
      return true;
    }
  }
  Report(name, "must be a decimal number such as \"0.5\"");
  return false;
}

bool JsonReader::ReportUnknown(std::string_view name, const std::string& text,
                               const std::vector<std::string>& known) {
  Report(name, UnknownValue(text, known));
  return false;
}

bool JsonReader::DecodeInteger(std::string_view name, const Json& value, int64_t* out, int64_t min,
                               uint64_t max) {
  if (!value.is_number_integer()) {
    Report(name, "must be a whole number");
    return false;
  }
  const bool fits =
      value.is_number_unsigned()
          ? value.get<uint64_t>() <= max
          : value.get<int64_t>() >= min &&
                (value.get<int64_t>() < 0 || static_cast<uint64_t>(value.get<int64_t>()) <= max);
  if (!fits) {
    Report(name, "must be between " + std::to_string(min) + " and " + std::to_string(max));
    return false;
  }
  *out = value.is_number_unsigned() ? static_cast<int64_t>(value.get<uint64_t>())
                                    : value.get<int64_t>();
  return true;
}

void JsonReader::Finish() {
  if (!json_.is_object()) return;
  for (const auto& [name, value] : json_.items()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const auto nearest = NearestWord(name, known_);
    Report(name, std::string(kUnknownField) +
                     (nearest ? "; did you mean " + *nearest + "?"
                              : "; remove it, or list the fields with kubectl explain"));
  }
}

Result<Json> ParseJson(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return InvalidArgumentError("longer than the " + std::to_string(limits.bytes) +
                                " bytes that are read");
  }
  size_t depth = 0;
  const size_t deep = NextCrossing(text, 0, &depth);
  if (deep == text.size()) return ParseWithinLimits(text);
  if (limits.cut_deep) return ParseWithinLimits(CutDeep(text));
  return InvalidArgumentError("nested more than " + std::to_string(kMaxJsonDepth) +
                              " levels deep at " + LineAndColumn(text, deep + 1));
}

}  // namespace lambdadnn
