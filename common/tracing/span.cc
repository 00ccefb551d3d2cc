// SPDX-License-Identifier: Apache-2.0
#include "common/tracing/span.h"

#include <algorithm>
#include <utility>

#include "common/base/bytes.h"

namespace lambdadnn {
namespace {

constexpr size_t kTraceIdDigits = 32;

bool IsLowerHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// Ids of zeros alone are invalid.
std::string HashId(const std::string& text) {
  const uint64_t hash = Xxh3(AsBytes(text));
  return Hex64(hash == 0 ? 1 : hash);
}

}  // namespace

void Span::Add(std::string key, std::string value) {
  if (!value.empty()) attributes.push_back({std::move(key), std::move(value)});
}

std::string TraceIdOf(std::string_view subject) {
  std::string digits;
  std::copy_if(subject.begin(), subject.end(), std::back_inserter(digits),
               [](char c) { return c != '-'; });
  const bool is_id = digits.size() == kTraceIdDigits &&
                     std::all_of(digits.begin(), digits.end(), IsLowerHex) &&
                     digits.find_first_not_of('0') != std::string::npos;
  const std::string text(subject);
  return is_id ? digits : HashId("high " + text) + HashId("low " + text);
}

std::string SpanIdOf(std::string_view trace_id, std::string_view key) {
  return HashId(std::string(trace_id) + "/" + std::string(key));
}

}  // namespace lambdadnn
