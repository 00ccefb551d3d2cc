// SPDX-License-Identifier: Apache-2.0
// Any bytes: ParseJson and JsonReader give a value or an error, and never crash. No value is nested
// deeper than it may be, whether deep text is refused or cut.
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/json/json_reader.h"
#include "tests/fuzz/json_depth.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto cut = lambdadnn::ParseJson(text, {.cut_deep = true});
  if (cut.ok()) lambdadnn::CheckDepth(*cut, lambdadnn::kMaxJsonDepth);
  const auto json = lambdadnn::ParseJson(text);
  if (!json.ok()) return 0;
  lambdadnn::CheckDepth(*json, lambdadnn::kMaxJsonDepth);
  LDNN_CHECK(cut.ok() && *cut == *json, "what is not too deep is read in full");
  std::vector<lambdadnn::FieldError> errors;
  lambdadnn::JsonReader reader(*json, "", &errors);
  int64_t number = 0;
  double decimal = 0;
  std::vector<std::string> words;
  reader.Required("number", &number);
  reader.Optional("decimal", &decimal);
  reader.Optional("words", &words);
  reader.Finish();
  (void)lambdadnn::ToStatus(errors).ToString();
  return 0;
}
