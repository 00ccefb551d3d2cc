// SPDX-License-Identifier: Apache-2.0
// Price books: JSON <-> Platform::Prices. The same form in a file of its own and as `prices` of a
// platform (docs/formats.md, "Price book").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "common/plan/workload.h"

namespace lambdadnn {

// Problems are appended to `errors`, by field path: types, spelling, ranges, a missing currency,
// and functions that are priced twice.
Platform::Prices DecodePriceBook(const Json& json, const std::string& path,
                                 std::vector<FieldError>* errors);
// A whole document; kInvalidArgument with every problem.
Result<Platform::Prices> PriceBookFromJson(const Json& json);
Json PriceBookToJson(const Platform::Prices& prices);

// What keeps the book at `path` from being used now: it counts from validFrom on, until validUntil.
std::optional<FieldError> OutOfForce(const Platform::Prices& prices, const std::string& path,
                                     WallTime now);

}  // namespace lambdadnn
