// SPDX-License-Identifier: Apache-2.0
#include "common/json/structural_schema.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "common/json/json_path.h"
#include "common/json/unknown_value.h"

namespace lambdadnn {
namespace {

using Type = StructuralSchema::Type;

// Longer texts are not matched against patterns: std::regex recurses once a character.
constexpr size_t kMaxPatternText = 4096;

Result<Type> TypeFromName(const std::string& name) {
  if (name == "object") return Type::kObject;
  if (name == "array") return Type::kArray;
  if (name == "string") return Type::kString;
  if (name == "integer") return Type::kInteger;
  if (name == "number") return Type::kNumber;
  if (name == "boolean") return Type::kBoolean;
  return InvalidArgumentError("schema: unknown type \"" + name + "\"");
}

std::string PathIn(const std::string& path, const std::string& field) {
  return path.empty() ? field : path + "." + field;
}

size_t CharacterCount(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not a UTF-8 continuation
  }));
}

std::string FormatBound(double bound) {
  return std::abs(bound) < 1e15 && bound == std::floor(bound)
             ? std::to_string(static_cast<int64_t>(bound))
             : FormatDouble(bound);
}

std::vector<std::string> KeysOf(const std::map<std::string, StructuralSchema>& properties) {
  std::vector<std::string> keys;
  for (const auto& [key, schema] : properties) keys.push_back(key);
  return keys;
}

Status ReadLimits(const Json& json, StructuralSchema* schema) {
  const auto number = [&](const char* name, std::optional<double>* out) {
    if (json.contains(name)) *out = json.at(name).get<double>();
  };
  const auto count = [&](const char* name, std::optional<uint64_t>* out) {
    if (json.contains(name)) *out = json.at(name).get<uint64_t>();
  };
  number("minimum", &schema->minimum);
  number("maximum", &schema->maximum);
  count("minLength", &schema->min_length);
  count("maxLength", &schema->max_length);
  count("minItems", &schema->min_items);
  count("maxItems", &schema->max_items);
  count("maxProperties", &schema->max_properties);
  schema->required = json.value("required", std::vector<std::string>{});
  schema->enumeration = json.value("enum", std::vector<std::string>{});
  schema->format = json.value("format", "");
  if (schema->type == Type::kInteger) {  // the widest that a format or an int64 allows
    const bool narrow = schema->format == "int32";
    if (!schema->minimum) {
      schema->minimum = narrow ? std::numeric_limits<int32_t>::min() : -0x1p63;
    }
    if (!schema->maximum) schema->maximum = narrow ? std::numeric_limits<int32_t>::max() : 0x1p63;
  }
  return OkStatus();
}

// The field `pattern`, or the equivalent rule, for which API servers show a better message.
void ReadPattern(const Json& json, std::string* pattern, std::string* hint) {
  constexpr std::string_view kBegin = "self.matches(r'";
  constexpr std::string_view kEnd = "')";
  *pattern = json.value("pattern", "");
  for (const Json& rule : json.value("x-kubernetes-validations", Json::array())) {
    const std::string text = rule.value("rule", "");
    if (!text.starts_with(kBegin) || !text.ends_with(kEnd)) continue;
    *pattern = text.substr(kBegin.size(), text.size() - kBegin.size() - kEnd.size());
    *hint = rule.value("message", "");
  }
}

}  // namespace

Result<StructuralSchema> StructuralSchema::Compile(const Json& json) {
  RegexCache regexes;  // a schema repeats a few patterns, and compiling one takes long
  return CompileNode(json, &regexes);
}

Result<StructuralSchema> StructuralSchema::CompileNode(const Json& json, RegexCache* regexes) {
  static const std::vector<std::string> kKnown = {"type",
                                                  "description",
                                                  "properties",
                                                  "required",
                                                  "enum",
                                                  "items",
                                                  "default",
                                                  "nullable",
                                                  "additionalProperties",
                                                  "minimum",
                                                  "maximum",
                                                  "minLength",
                                                  "maxLength",
                                                  "minItems",
                                                  "maxItems",
                                                  "maxProperties",
                                                  "format",
                                                  "pattern",
                                                  "example",
                                                  "x-kubernetes-validations",
                                                  "x-kubernetes-list-type",
                                                  "x-kubernetes-list-map-keys",
                                                  "x-kubernetes-map-type",
                                                  "x-kubernetes-preserve-unknown-fields",
                                                  "x-kubernetes-int-or-string"};
  try {
    StructuralSchema schema;
    for (const auto& [key, value] : json.items()) {
      if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end()) {
        return InvalidArgumentError("schema: \"" + key + "\" is not understood");
      }
    }
    schema.preserve_unknown_fields = json.value("x-kubernetes-preserve-unknown-fields", false);
    if (json.value("x-kubernetes-int-or-string", false)) {
      schema.type = Type::kIntOrString;
    } else if (json.contains("type")) {
      LDNN_ASSIGN_OR_RETURN(schema.type, TypeFromName(json.at("type").get<std::string>()));
    } else if (!schema.preserve_unknown_fields) {
      return InvalidArgumentError("schema: type is missing");
    }
    schema.description = json.value("description", "");
    schema.nullable = json.value("nullable", false);
    if (json.contains("default")) schema.default_value = json.at("default");
    LDNN_RETURN_IF_ERROR(ReadLimits(json, &schema));
    ReadPattern(json, &schema.pattern, &schema.hint_);
    if (!schema.pattern.empty()) {
      auto& regex = (*regexes)[schema.pattern];
      if (regex == nullptr) regex = std::make_shared<const std::regex>(schema.pattern);
      schema.regex_ = regex;
    }
    if (json.contains("properties")) {
      for (const auto& [name, property] : json.at("properties").items()) {
        auto compiled = CompileNode(property, regexes);
        if (!compiled.ok()) return compiled.status().WithContext(name);
        schema.properties.emplace(name, std::move(compiled).value());
      }
    }
    const auto nested = [&](const char* name, std::shared_ptr<const StructuralSchema>* out) {
      if (!json.contains(name)) return OkStatus();
      auto compiled = CompileNode(json.at(name), regexes);
      if (!compiled.ok()) return compiled.status().WithContext(name);
      *out = std::make_shared<const StructuralSchema>(std::move(compiled).value());
      return OkStatus();
    };
    LDNN_RETURN_IF_ERROR(nested("items", &schema.items));
    LDNN_RETURN_IF_ERROR(nested("additionalProperties", &schema.additional_properties));
    if (schema.type == Type::kArray && schema.items == nullptr) {
      return InvalidArgumentError("schema: an array needs items");
    }
    return schema;
  } catch (const Json::exception& error) {
    return InvalidArgumentError(std::string("schema: ") + error.what());
  } catch (const std::regex_error& error) {
    return InvalidArgumentError(std::string("schema: pattern: ") + error.what());
  }
}

void StructuralSchema::ApplyDefaults(Json* value) const {
  if (value->is_array() && items != nullptr) {
    for (Json& item : *value) items->ApplyDefaults(&item);
  }
  if (!value->is_object()) return;
  for (const auto& [name, property] : properties) {
    const auto found = value->find(name);
    const bool dropped = found != value->end() && found->is_null() && !property.nullable &&
                         property.default_value.has_value();
    if (found == value->end() || dropped) {
      if (!property.default_value) continue;
      (*value)[name] = *property.default_value;
    }
    property.ApplyDefaults(&(*value)[name]);
  }
  if (additional_properties != nullptr) {
    for (auto& [name, item] : value->items()) {
      if (!properties.contains(name)) additional_properties->ApplyDefaults(&item);
    }
  }
}

void StructuralSchema::Validate(const Json& value, const std::string& path,
                                std::vector<FieldError>* errors, const Json* taken) const {
  if (value.is_null()) {
    if (!nullable && type != Type::kAny) {
      errors->push_back({path, "has no value; give it one or remove the line"});
    }
    return;
  }
  switch (type) {
    case Type::kAny:
      return;
    case Type::kObject:
      return ValidateObject(value, path, errors, taken);
    case Type::kArray:
      return ValidateArray(value, path, errors, taken);
    default:
      if (std::string problem = ScalarProblem(value); !problem.empty()) {
        errors->push_back({path, std::move(problem)});
      }
  }
}

void StructuralSchema::ValidateProperty(const std::string& name, const Json& value,
                                        const std::string& path, std::vector<FieldError>* errors,
                                        const Json* taken) const {
  if (taken != nullptr && *taken == value) return;
  const auto known = properties.find(name);
  if (known != properties.end()) {
    known->second.Validate(value, PathIn(path, name), errors, taken);
  } else if (additional_properties != nullptr) {
    additional_properties->Validate(value, PathIn(path, name), errors, taken);
  } else if (!preserve_unknown_fields) {
    const std::vector<std::string> keys = KeysOf(properties);
    const auto nearest = NearestWord(name, keys);
    std::string message = "is not a field here; ";
    if (nearest) {
      message += "did you mean " + *nearest + "?";
    } else if (keys.empty()) {
      message += "remove it: nothing goes in here";
    } else {
      message += "there are " + Join(keys, ", ");
    }
    errors->push_back({PathIn(path, name), std::move(message)});
  }
}

void StructuralSchema::CheckRequired(const Json& object, const std::string& path,
                                     std::vector<FieldError>* errors) const {
  for (const std::string& name : required) {
    if (!object.contains(name)) errors->push_back({PathIn(path, name), "is required; add it"});
  }
}

void StructuralSchema::ValidateObject(const Json& value, const std::string& path,
                                      std::vector<FieldError>* errors, const Json* taken) const {
  if (!value.is_object()) {
    errors->push_back({path, "must be a map of fields"});
    return;
  }
  if (max_properties == 0u && !value.empty()) {
    for (const auto& [name, item] : value.items()) {
      errors->push_back(
          {PathIn(path, name), "is not a field here; remove it: nothing goes in here"});
    }
    return;
  }
  if (max_properties && value.size() > *max_properties) {
    errors->push_back({path, "has " + std::to_string(value.size()) + " entries; at most " +
                                 std::to_string(*max_properties) + " are allowed"});
  }
  for (const auto& [name, item] : value.items()) {
    const Json* const known = taken == nullptr ? nullptr : FindPath(*taken, {name});
    ValidateProperty(name, item, path, errors, known);
  }
  CheckRequired(value, path, errors);
}

void StructuralSchema::ValidateArray(const Json& value, const std::string& path,
                                     std::vector<FieldError>* errors, const Json* taken) const {
  if (!value.is_array()) {
    errors->push_back({path, "must be a list"});
    return;
  }
  if (max_items && value.size() > *max_items) {
    errors->push_back({path, "has " + std::to_string(value.size()) + " entries; at most " +
                                 std::to_string(*max_items) + " are allowed"});
    return;  // no message for each of a million entries
  }
  if (min_items && value.size() < *min_items) {
    errors->push_back({path, "has " + std::to_string(value.size()) + " entries; at least " +
                                 std::to_string(*min_items) + " are needed"});
  }
  for (size_t i = 0; i < value.size(); ++i) {
    const bool known = taken != nullptr && taken->is_array() && i < taken->size();
    if (known && (*taken)[i] == value[i]) continue;
    items->Validate(value[i], path + "[" + std::to_string(i) + "]", errors,
                    known ? &(*taken)[i] : nullptr);
  }
}

std::string StructuralSchema::ScalarProblem(const Json& value) const {
  switch (type) {
    case Type::kBoolean:
      return value.is_boolean() ? "" : "must be true or false";
    case Type::kString:
      if (value.is_string()) return TextProblem(value.get_ref<const std::string&>());
      if (!hint_.empty()) {
        return value.is_primitive() ? hint_ + "; found the bare value " + DumpJson(value) : hint_;
      }
      return value.is_primitive() ? "must be text; write \"" + DumpJson(value) + "\" in quotes"
                                  : "must be text";
    case Type::kIntOrString:
      if (value.is_string()) return TextProblem(value.get_ref<const std::string&>());
      return value.is_number_integer() ? "" : "must be a whole number or text";
    default:
      return NumberProblem(value);
  }
}

std::string StructuralSchema::TextProblem(const std::string& text) const {
  if (!enumeration.empty() &&
      std::find(enumeration.begin(), enumeration.end(), text) == enumeration.end()) {
    return UnknownValue(text, enumeration);
  }
  const size_t length = CharacterCount(text);
  if (max_length && length > *max_length) {
    return "is " + std::to_string(length) + " characters long; at most " +
           std::to_string(*max_length) + " are allowed";
  }
  if (min_length && length < *min_length) {
    return *min_length == 1 ? "must not be empty"
                            : "must have at least " + std::to_string(*min_length) + " characters";
  }
  if (regex_ != nullptr && (text.size() > kMaxPatternText || !std::regex_search(text, *regex_))) {
    return hint_.empty() ? ShownText(text) + " does not match " + pattern
                         : hint_ + "; found " + ShownText(text);
  }
  WallTime ignored;
  if (format == "date-time" && !ParseRfc3339(text, &ignored)) {
    return "must be a time such as 2026-01-31T12:00:00Z";
  }
  return "";
}

std::string StructuralSchema::NumberProblem(const Json& value) const {
  const bool whole_type = type == Type::kInteger;
  if (!value.is_number()) {
    std::string message = whole_type ? "must be a whole number" : "must be a number";
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      const bool padded = text.size() > 1 && text.front() == '0';
      if (ParseInteger(text))
        message += padded ? "; remove the leading zeros" : "; remove the quotes";
    }
    return message;
  }
  const double number = value.get<double>();
  if (maximum && number > *maximum) {
    return DumpJson(value) + " is too large; it must be at most " + FormatBound(*maximum);
  }
  if (minimum && number < *minimum) {
    return DumpJson(value) + " is too small; it must be at least " + FormatBound(*minimum);
  }
  if (whole_type && !value.is_number_integer()) {
    return DumpJson(value) + " must be a whole number";
  }
  // 2^63 .. 2^64 - 1 read as unsigned: more than an int64 holds.
  if (whole_type && value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return DumpJson(value) + " is too large; it must be at most 9223372036854775807";
  }
  return "";
}

}  // namespace lambdadnn
