// SPDX-License-Identifier: Apache-2.0
// JSON forms of protocol/slice.h, documented in docs/formats.md. Decoding is strict and total: any
// bytes give a value or kInvalidArgument with field paths. Plans: common/plan_json.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/json/json_reader.h"
#include "common/protocol/slice.h"

namespace lambdadnn {

// As request.protocol says, without what that version does not know.
std::string EncodeSliceRequest(const SliceRequest& request);
// Of a newer protocol than this version's, fields that it does not know are left out when
// minimumProtocol allows it; in all other cases they are errors.
Result<SliceRequest> DecodeSliceRequest(std::string_view text);

// The longest line that is read, of a stream or as a record in the store.
inline constexpr size_t kMaxSliceLineBytes = size_t{16} << 20;
// One that is kept in a store: it holds some kilobytes. A longer object is no record.
inline constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 20;
// Lines without the newline.
std::string EncodeProgress(const ProgressLine& line);
// {"type":"completed", ..., "length": bytes before this field, "xxh3": "…"}
std::string EncodeRecord(const SliceRecord& record);

// Without the fields that this version does not know. nullopt: a line of a type that it does not
// know; skip it.
Result<std::optional<std::variant<ProgressLine, SliceRecord>>> DecodeSliceLine(
    std::string_view line);

}  // namespace lambdadnn
