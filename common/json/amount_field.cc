// SPDX-License-Identifier: Apache-2.0
#include "common/json/amount_field.h"

#include <cmath>

namespace lambdadnn {

bool ReadAmount(JsonReader& reader, std::string_view name, double* out) {
  double value = 0;
  if (!reader.Optional(name, &value)) return false;
  if (!(value >= 0) || !std::isfinite(value)) {
    reader.Report(name, "must not be negative");
    return false;
  }
  *out = value;
  return true;
}

}  // namespace lambdadnn
