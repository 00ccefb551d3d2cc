// SPDX-License-Identifier: Apache-2.0
// Any bytes: ParseJson and JsonReader give a value or an error, and never crash.
#include <cstddef>
#include <cstdint>

#include "common/json/json_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = lambdadnn::ParseJson(text);
  if (!json.ok()) return 0;
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
