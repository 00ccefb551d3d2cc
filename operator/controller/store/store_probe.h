// SPDX-License-Identifier: Apache-2.0
// What an object store can do beyond what every store must (PUT, GET with ranges, HEAD, DELETE,
// lists, deletion of many, multipart uploads), found out by trying it: servers say nothing of it,
// and some ignore the header of a condition that they do not know.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {

// A Put creates an object only where none is.
inline constexpr const char* kConditionalPut = "ConditionalPut";
// The store notifies those that wait for an object.
inline constexpr const char* kArrivalHints = "ArrivalHints";

// In this order. Writes an object under `key`, which must be this call's alone, and deletes it. On
// an error the store cannot be written or does not answer; the object is left only where it cannot
// be deleted either.
Result<std::vector<std::string>> ProbeStore(ObjectStore& store, const std::string& key);

}  // namespace lambdadnn
