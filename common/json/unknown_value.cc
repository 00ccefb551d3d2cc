// SPDX-License-Identifier: Apache-2.0
#include "common/json/unknown_value.h"

#include "common/base/text.h"

namespace lambdadnn {

std::string ShownText(const std::string& text) {
  constexpr size_t kMaxShown = 60;
  return "\"" + (text.size() > kMaxShown ? text.substr(0, kMaxShown) + "..." : text) + "\"";
}

std::string UnknownValue(const std::string& text, std::span<const std::string> known) {
  std::string message = ShownText(text) + " is not known here; ";
  if (known.size() == 1) return message + "only " + known[0] + " is";
  if (const auto nearest = NearestWord(text, known)) {
    message += "did you mean " + *nearest + "? There ";
  } else {
    message += "there ";
  }
  return message + "are " + Join(known, ", ");
}

}  // namespace lambdadnn
