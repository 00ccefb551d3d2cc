// SPDX-License-Identifier: Apache-2.0
// Lists of objects, and files of one document.
#include "common/json/json_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/json/yaml_file.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

std::vector<int> Decoded(const Json& list, std::vector<FieldError>* errors) {
  return DecodeList(list, "spec.numbers", errors, [&](const Json& item, const std::string& path) {
    int number = 0;
    JsonReader(item, path, errors).Required("number", &number);
    return number;
  });
}

TEST(DecodeList, ReadsEveryItemAndSaysWhichIsWrong) {
  std::vector<FieldError> errors;
  EXPECT_EQ(Decoded(Json::array(), &errors), std::vector<int>());
  EXPECT_EQ(Decoded(Json::array({{{"number", 1}}, {{"number", 2}}}), &errors),
            (std::vector<int>{1, 2}));
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(Decoded(Json::array({{{"number", 1}}, {{"number", "x"}}}), &errors).size(), 2u);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "spec.numbers[1].number");
}

TEST(DecodeList, WhatIsNoListIsReported) {
  for (const Json& value : {Json(3), Json("text"), Json::object(), Json()}) {
    std::vector<FieldError> errors;
    EXPECT_TRUE(Decoded(value, &errors).empty());
    EXPECT_EQ(errors, (std::vector<FieldError>{{"spec.numbers", "must be a list"}}));
  }
}

Result<int> NumberOf(const Json& json) {
  if (!json.is_number_integer()) return InvalidArgumentError("must be a whole number");
  return json.get<int>();
}

TEST(ReadYamlFile, TakesOneDocumentAndNamesTheFileInEveryError) {
  const std::string file = MakeTempDir() + "/number.yaml";
  EXPECT_THAT(ReadYamlFileAs(file, NumberOf).status().message(), HasSubstr(file));
  const struct {
    const char* text;
    const char* error;  // "" = it is read
  } rows[] = {
      {"7\n", ""},
      {"", "holds 0 YAML documents; write exactly one"},
      {"7\n---\n8\n", "holds 2 YAML documents; write exactly one"},
      {"a: [\n", ":2: "},
      {"seven\n", "must be a whole number"},
  };
  for (const auto& [text, error] : rows) {
    ASSERT_TRUE(WriteFileAtomically(file, text).ok());
    const Result<int> number = ReadYamlFileAs(file, NumberOf);
    if (error[0] == '\0') {
      ASSERT_TRUE(number.ok()) << number.status().ToString();
      EXPECT_EQ(*number, 7);
      continue;
    }
    EXPECT_EQ(number.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(number.status().message(), HasSubstr(file));
    EXPECT_THAT(number.status().message(), HasSubstr(error));
  }
}

}  // namespace
}  // namespace lambdadnn
