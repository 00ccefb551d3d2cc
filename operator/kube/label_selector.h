// SPDX-License-Identifier: Apache-2.0
// Label selectors as in `kubectl get -l`: "a=b,c!=d,e in (x, y),f notin (z),g,!h".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

class LabelSelector {
 public:
  // An empty text selects everything. kInvalidArgument names the part that cannot be read.
  static Result<LabelSelector> Parse(std::string_view text);
  // `object` is a whole API object.
  bool Matches(const Json& object) const;

 private:
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist };
  struct Requirement {
    std::string key;
    Operator op = Operator::kExists;
    std::vector<std::string> values;
  };
  static Result<Requirement> ParseRequirement(std::string_view text);
  std::vector<Requirement> requirements_;
};

}  // namespace lambdadnn
