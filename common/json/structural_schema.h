// SPDX-License-Identifier: Apache-2.0
// Structural schemas: the subset of OpenAPI v3 in which CustomResourceDefinitions describe their
// objects (type, properties, required, enum, ranges, lengths, pattern, default, nullable,
// x-kubernetes-preserve-unknown-fields, x-kubernetes-int-or-string). Of x-kubernetes-validations it
// knows one form, a pattern with a sentence: {rule: "self.matches(r'PATTERN')", message: SENTENCE}.
// Validation reports every problem with its field path and what to write instead; unknown fields
// are problems. Immutable once compiled: use one from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "common/json/json_reader.h"

namespace lambdadnn {

class StructuralSchema {
 public:
  enum class Type { kAny, kObject, kArray, kString, kInteger, kNumber, kBoolean, kIntOrString };

  // kInvalidArgument when the schema is not a structural one that this class understands.
  static Result<StructuralSchema> Compile(const Json& schema);

  // Fills absent fields that have a default, inside of objects that are there, and drops nulls
  // where the schema does not allow them and has a default.
  void ApplyDefaults(Json* value) const;
  // Parts of `value` that are equal to those of `taken`, the value as it was validated before, are
  // not validated again.
  void Validate(const Json& value, const std::string& path, std::vector<FieldError>* errors,
                const Json* taken = nullptr) const;
  // Validates one field of an object; an unknown one is reported.
  void ValidateProperty(const std::string& name, const Json& value, const std::string& path,
                        std::vector<FieldError>* errors, const Json* taken = nullptr) const;
  // Reports required fields that `object` lacks (of the object itself, not of nested ones).
  void CheckRequired(const Json& object, const std::string& path,
                     std::vector<FieldError>* errors) const;

  Type type = Type::kAny;
  std::string description;
  std::map<std::string, StructuralSchema> properties;
  std::vector<std::string> required;
  std::vector<std::string> enumeration;
  std::shared_ptr<const StructuralSchema> items;                  // of an array
  std::shared_ptr<const StructuralSchema> additional_properties;  // of a map
  std::optional<Json> default_value;
  bool nullable = false;
  bool preserve_unknown_fields = false;
  std::optional<double> minimum;
  std::optional<double> maximum;
  std::optional<uint64_t> min_length;  // of text, in characters
  std::optional<uint64_t> max_length;
  std::optional<uint64_t> min_items;
  std::optional<uint64_t> max_items;
  std::optional<uint64_t> max_properties;
  std::string format;
  std::string pattern;

 private:
  using RegexCache = std::map<std::string, std::shared_ptr<const std::regex>>;
  static Result<StructuralSchema> CompileNode(const Json& schema, RegexCache* regexes);
  void ValidateObject(const Json& value, const std::string& path, std::vector<FieldError>* errors,
                      const Json* taken) const;
  void ValidateArray(const Json& value, const std::string& path, std::vector<FieldError>* errors,
                     const Json* taken) const;
  // The sentence that is wrong about a scalar; empty when nothing is.
  std::string ScalarProblem(const Json& value) const;
  std::string TextProblem(const std::string& text) const;
  std::string NumberProblem(const Json& value) const;

  std::string hint_;
  std::shared_ptr<const std::regex> regex_;
};

}  // namespace lambdadnn
