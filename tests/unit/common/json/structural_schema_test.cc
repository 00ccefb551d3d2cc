// SPDX-License-Identifier: Apache-2.0
#include "common/json/structural_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StructuralSchema Schema(const char* text) {
  auto schema = StructuralSchema::Compile(Json::parse(text));
  EXPECT_TRUE(schema.ok()) << schema.status().ToString();
  return std::move(schema).value();
}

std::vector<FieldError> Errors(const StructuralSchema& schema, const char* value) {
  std::vector<FieldError> errors;
  schema.Validate(Json::parse(value), "v", &errors);
  return errors;
}

std::string Problem(const char* schema, const char* value) {
  const auto errors = Errors(Schema(schema), value);
  EXPECT_LE(errors.size(), 1u);
  return errors.empty() ? "" : errors[0].message;
}

TEST(StructuralSchema, WholeNumbersAndTheirBounds) {
  constexpr const char* kSchema = R"({"type": "integer", "minimum": 1, "maximum": 9})";
  EXPECT_EQ(Problem(kSchema, "1"), "");
  EXPECT_EQ(Problem(kSchema, "9"), "");
  EXPECT_EQ(Problem(kSchema, "0"), "0 is too small; it must be at least 1");
  EXPECT_EQ(Problem(kSchema, "10"), "10 is too large; it must be at most 9");
  EXPECT_EQ(Problem(kSchema, "1e99"), "1e+99 is too large; it must be at most 9");
  EXPECT_EQ(Problem(kSchema, "2.5"), "2.5 must be a whole number");
  EXPECT_EQ(Problem(kSchema, "\"3\""), "must be a whole number; remove the quotes");
  EXPECT_EQ(Problem(kSchema, "true"), "must be a whole number");
  EXPECT_EQ(Problem(kSchema, "null"), "has no value; give it one or remove the line");
}

TEST(StructuralSchema, FormatsBoundIntegers) {
  EXPECT_THAT(Problem(R"({"type": "integer", "format": "int32"})", "2147483648"),
              HasSubstr("at most 2147483647"));
  EXPECT_EQ(Problem(R"({"type": "integer", "format": "int64"})", "9223372036854775807"), "");
  EXPECT_THAT(Problem(R"({"type": "integer", "format": "int64"})", "9223372036854775808"),
              HasSubstr("too large"));
}

TEST(StructuralSchema, TextEnumsLengthsAndPatterns) {
  constexpr const char* kEnum = R"({"type": "string", "enum": ["sgd", "adam", "adamw"]})";
  EXPECT_EQ(Problem(kEnum, "\"adam\""), "");
  EXPECT_EQ(Problem(kEnum, "\"adan\""),
            "\"adan\" is not known here; did you mean adam? There are sgd, adam, adamw");
  EXPECT_EQ(Problem(kEnum, "\"SGD\""),
            "\"SGD\" is not known here; did you mean sgd? There are sgd, adam, adamw");
  EXPECT_EQ(Problem(kEnum, "\"rmsprop\""),
            "\"rmsprop\" is not known here; there are sgd, adam, adamw");
  EXPECT_EQ(Problem(kEnum, "7"), "must be text; write \"7\" in quotes");
  EXPECT_EQ(Problem(kEnum, "[]"), "must be text");
  EXPECT_EQ(Problem(R"({"type": "string", "maxLength": 2})", "\"λλ\""), "");
  EXPECT_THAT(Problem(R"({"type": "string", "maxLength": 2})", "\"abc\""), HasSubstr("at most 2"));
  EXPECT_EQ(Problem(R"({"type": "string", "minLength": 1})", "\"\""), "must not be empty");
  EXPECT_EQ(Problem(R"({"type": "string", "pattern": "^a+$"})", "\"b\""),
            "\"b\" does not match ^a+$");
  EXPECT_EQ(Problem(R"({"type": "string", "format": "date-time"})", "\"2026-01-31T12:00:00Z\""),
            "");
  EXPECT_THAT(Problem(R"({"type": "string", "format": "date-time"})", "\"noon\""),
              HasSubstr("must be a time"));
}

TEST(StructuralSchema, TheSentenceOfARuleReplacesThePattern) {
  const auto schema = Schema(R"x({"type": "string", "x-kubernetes-validations": [
                  {"rule": "self != 'x'", "message": "another rule, not known here"},
                  {"rule": "self.matches(r'^[0-9]+$')", "message": "must be digits"}]})x");
  EXPECT_THAT(Errors(schema, "\"x\""), ElementsAre(FieldError{"v", "must be digits; found \"x\""}));
  EXPECT_THAT(Errors(schema, "0.1"),
              ElementsAre(FieldError{"v", "must be digits; found the bare value 0.1"}));
}

TEST(StructuralSchema, AnObjectOfNoPropertiesNamesWhatIsInIt) {
  const auto schema = Schema(R"({"type": "object", "maxProperties": 0,
                                 "x-kubernetes-preserve-unknown-fields": true})");
  EXPECT_THAT(Errors(schema, "{}"), IsEmpty());
  EXPECT_THAT(
      Errors(schema, R"({"weight": 1})"),
      ElementsAre(FieldError{"v.weight", "is not a field here; remove it: nothing goes in here"}));
}

TEST(StructuralSchema, ALongTextDoesNotOverflowTheMatcher) {
  const auto schema = Schema(R"({"type": "string", "pattern": "^(a|b)*$"})");
  EXPECT_EQ(Errors(schema, ("\"" + std::string(1 << 20, 'a') + "\"").c_str()).size(), 1u);
}

TEST(StructuralSchema, ObjectsNameUnknownAndMissingFields) {
  const auto schema = Schema(R"({"type": "object", "required": ["name"], "properties": {
      "name": {"type": "string"}, "shards": {"type": "integer"}}})");
  EXPECT_THAT(Errors(schema, R"({"shard": 1, "other": 2})"),
              ElementsAre(FieldError{"v.other", "is not a field here; there are name, shards"},
                          FieldError{"v.shard", "is not a field here; did you mean shards?"},
                          FieldError{"v.name", "is required; add it"}));
  EXPECT_THAT(Errors(schema, "[]"), ElementsAre(FieldError{"v", "must be a map of fields"}));
  EXPECT_THAT(
      Errors(Schema(R"({"type": "object"})"), R"({"x": 1})"),
      ElementsAre(FieldError{"v.x", "is not a field here; remove it: nothing goes in here"}));
}

TEST(StructuralSchema, ListsAndMaps) {
  const auto list = Schema(R"({"type": "array", "minItems": 2, "maxItems": 3,
                               "items": {"type": "integer"}})");
  EXPECT_TRUE(Errors(list, "[1, 2]").empty());
  EXPECT_THAT(Errors(list, "[1]"),
              ElementsAre(FieldError{"v", "has 1 entries; at least 2 are needed"}));
  EXPECT_THAT(Errors(list, "[1,2,3,4]"),
              ElementsAre(FieldError{"v", "has 4 entries; at most 3 are allowed"}));
  EXPECT_THAT(Errors(list, R"([1, "x"])"),
              ElementsAre(FieldError{"v[1]", "must be a whole number"}));
  const auto map = Schema(R"({"type": "object", "maxProperties": 1,
                              "additionalProperties": {"type": "string"}})");
  EXPECT_THAT(Errors(map, R"({"a": 1, "b": "x"})"),
              ElementsAre(FieldError{"v", "has 2 entries; at most 1 are allowed"},
                          FieldError{"v.a", "must be text; write \"1\" in quotes"}));
}

TEST(StructuralSchema, PreservedFieldsAndIntOrString) {
  EXPECT_EQ(Problem(R"({"type": "object", "x-kubernetes-preserve-unknown-fields": true})",
                    R"({"any": [1]})"),
            "");
  EXPECT_EQ(Problem(R"({"x-kubernetes-preserve-unknown-fields": true})", "null"), "");
  EXPECT_EQ(Problem(R"({"x-kubernetes-int-or-string": true})", "\"50%\""), "");
  EXPECT_EQ(Problem(R"({"x-kubernetes-int-or-string": true})", "5"), "");
  EXPECT_NE(Problem(R"({"x-kubernetes-int-or-string": true})", "5.5"), "");
}

TEST(StructuralSchema, DefaultsFillInsideWhatIsThere) {
  const auto schema = Schema(R"({"type": "object", "properties": {
      "a": {"type": "integer", "default": 1},
      "b": {"type": "object", "default": {}, "properties": {"c": {"type": "integer", "default": 2}}},
      "d": {"type": "object", "properties": {"e": {"type": "integer", "default": 3}}},
      "f": {"type": "array", "items": {"type": "object", "properties": {
            "g": {"type": "integer", "default": 4}}}}}})");
  Json value = Json::parse(R"({"a": null, "f": [{}, {"g": 5}]})");
  schema.ApplyDefaults(&value);
  EXPECT_EQ(value, Json::parse(R"({"a": 1, "b": {"c": 2}, "f": [{"g": 4}, {"g": 5}]})"));
  value = Json::parse(R"({"d": {}, "b": {"c": 7}})");
  schema.ApplyDefaults(&value);
  EXPECT_EQ(value, Json::parse(R"({"a": 1, "b": {"c": 7}, "d": {"e": 3}})"));
  value = 7;
  schema.ApplyDefaults(&value);
  EXPECT_EQ(value, 7);
}

TEST(StructuralSchema, OnlyStructuralSchemasCompile) {
  for (const char* text :
       {R"({"type": "thing"})", R"({})", R"({"type": "array"})",
        R"({"type": "string", "$ref": "x"})", R"({"type": "string", "pattern": "("})",
        R"({"type": "integer", "minimum": "x"})",
        R"({"type": "object", "properties": {"a": {"anyOf": []}}})", "[]", "7"}) {
    EXPECT_EQ(StructuralSchema::Compile(Json::parse(text)).status().code(),
              StatusCode::kInvalidArgument)
        << text;
  }
}

}  // namespace
}  // namespace lambdadnn
