// SPDX-License-Identifier: Apache-2.0
// Values that a hostile writer of an object might put in any of its fields.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "common/json/json_reader.h"

namespace lambdadnn {

inline const std::vector<Json>& HostileValues() {
  static const std::vector<Json> values = Json::parse(R"([
      null, true, -1, 0, 1, 10000, 2147483647, 1000000000000000, 9223372036854775807,
      -9223372036854775808, 18446744073709551615, 1e300, -0.5, "", "-1", "0", "nan", "inf", "1e300",
      "1e-320", "text", "2200-12-31T23:59:59Z", "0001-01-01T00:00:00Z", [], [0], [1, 10000],
      [1, 2147483647, 2147483647], [null], ["x"], [[]], {}, {"a": []}])");
  return values;
}

// `visit` is called with the object once for every field below `path` and every value in its place.
inline void ForEachHostileField(Json object, const Json::json_pointer& path,
                                const std::function<void(const Json& changed)>& visit) {
  const Json flat = object.at(path).flatten();
  std::vector<std::string> fields;
  for (const auto& [below, value] : flat.items()) {
    // Of "/plan/aggregation/layers/0" also all that it is in.
    for (size_t end = below.size(); end > 0; end = below.rfind('/', end - 1)) {
      fields.push_back(below.substr(0, end));
    }
  }
  std::sort(fields.begin(), fields.end());
  fields.erase(std::unique(fields.begin(), fields.end()), fields.end());
  for (const std::string& field : fields) {
    Json& place = object.at(path / Json::json_pointer(field));
    const Json before = place;
    for (const Json& value : HostileValues()) {
      place = value;
      visit(object);
    }
    place = before;
  }
}

}  // namespace lambdadnn
