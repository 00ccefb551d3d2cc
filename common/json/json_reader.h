// SPDX-License-Identifier: Apache-2.0
// Strict decoding of JSON objects: all problems are reported at once, each with its field path; an
// unknown field is reported with the nearest known one.
//
//   JsonReader reader(json, "spec.training", &errors);
//   reader.Optional("epochs", &training.epochs);
//   reader.Required("seed", &training.seed);
//   reader.Finish();   // reports unknown fields
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/status.h"

namespace lambdadnn {

using Json = nlohmann::json;

struct FieldError {
  std::string path;     // "spec.training.epochs"
  std::string message;  // what is wrong; what to do
  friend bool operator==(const FieldError&, const FieldError&) = default;
};

// kInvalidArgument with every error as "path: message", joined by "; "; OK when there are none.
Status ToStatus(const std::vector<FieldError>& errors);

class JsonReader {
 public:
  // `json` must outlive the reader. A value that is not an object is reported at once.
  JsonReader(const Json& json, std::string path, std::vector<FieldError>* errors);

  bool Has(std::string_view name) const;
  // Fields: absent and null leave `*out` alone (Optional) or are reported (Required). A wrong type,
  // and a text that names no value of an enum (base/enum_names.h), is reported and leaves `*out`
  // alone. The return value tells whether `*out` was set.
  template <typename T>
  bool Optional(std::string_view name, T* out);
  template <typename T>
  bool Required(std::string_view name, T* out);
  // A nested value, or null when absent; marks the field as known.
  const Json* Child(std::string_view name);
  std::string PathOf(std::string_view name) const;
  void Report(std::string_view name, std::string message);
  // Reports the fields that were never asked for. Call once, last.
  void Finish();

 private:
  const Json* Find(std::string_view name);
  bool Missing(std::string_view name);
  bool Decode(std::string_view name, const Json& value, bool* out);
  bool Decode(std::string_view name, const Json& value, std::string* out);
  // Accepts JSON numbers, and strings that hold a number (the Kubernetes API has no floats).
  bool Decode(std::string_view name, const Json& value, double* out);
  bool DecodeInteger(std::string_view name, const Json& value, int64_t* out, int64_t min,
                     uint64_t max);

  bool ReportUnknown(std::string_view name, const std::string& text,
                     const std::vector<std::string>& known);

  template <typename T>
  bool DecodeAny(std::string_view name, const Json& value, T* out);

  const Json& json_;
  std::string path_;
  std::vector<FieldError>* errors_;
  std::vector<std::string> known_;
};

// Levels of maps and lists. Parsing a value is a loop, but copying, comparing and printing one
// recurse at every level, so that deeply nested input would overflow the stack. What the YAML
// reader accepts (kMaxYamlDepth) is read again as JSON within an object, a list and an event.
inline constexpr size_t kMaxJsonDepth = 128;
// A value takes up to 20 times the memory of its text.
inline constexpr size_t kMaxJsonBytes = size_t{64} << 20;

struct JsonLimits {
  size_t bytes = kMaxJsonBytes;
  // Puts null in place of what is nested deeper than kMaxJsonDepth, instead of refusing the text:
  // for lists of objects of many owners, of which one must not keep all others from being read.
  bool cut_deep = false;
};

// Parses text; the error names line and column, or the limit.
Result<Json> ParseJson(std::string_view text, const JsonLimits& limits = {});

// ---------------------------------------------------------------------------------------------

template <typename T>
bool JsonReader::DecodeAny(std::string_view name, const Json& value, T* out) {
  if constexpr (NamedEnum<T>) {
    std::string text;
    if (!Decode(name, value, &text)) return false;
    const std::optional<T> found = FindEnum<T>(text);
    if (!found) return ReportUnknown(name, text, EnumNameList<T>());
    *out = *found;
    return true;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    int64_t integer = 0;  // bits of a uint64_t
    if (!DecodeInteger(name, value, &integer, 0, UINT64_MAX)) return false;
    *out = static_cast<uint64_t>(integer);
    return true;
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    int64_t integer = 0;
    if (!DecodeInteger(name, value, &integer, static_cast<int64_t>(std::numeric_limits<T>::min()),
                       static_cast<uint64_t>(std::numeric_limits<T>::max()))) {
      return false;
    }
    *out = static_cast<T>(integer);
    return true;
  } else if constexpr (requires { typename T::value_type; } && !std::is_same_v<T, std::string>) {
    if constexpr (requires(T t) { t.has_value(); }) {  // std::optional
      typename T::value_type inner{};
      if (!DecodeAny(name, value, &inner)) return false;
      *out = std::move(inner);
      return true;
    } else {  // std::vector
      if (!value.is_array()) {
        Report(name, "must be a list");
        return false;
      }
      T items;
      for (size_t i = 0; i < value.size(); ++i) {
        typename T::value_type item{};
        if (!DecodeAny(std::string(name) + "[" + std::to_string(i) + "]", value[i], &item)) {
          return false;
        }
        items.push_back(std::move(item));
      }
      *out = std::move(items);
      return true;
    }
  } else {
    return Decode(name, value, out);
  }
}

template <typename T>
bool JsonReader::Optional(std::string_view name, T* out) {
  const Json* value = Find(name);
  return value != nullptr && DecodeAny(name, *value, out);
}

template <typename T>
bool JsonReader::Required(std::string_view name, T* out) {
  const Json* value = Find(name);
  if (value == nullptr) return Missing(name);
  return DecodeAny(name, *value, out);
}

}  // namespace lambdadnn
