// SPDX-License-Identifier: Apache-2.0
// Any text as a quantity of memory, as a time and as the date of an HTTP answer: what is taken is
// written back as the same value.
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/quantity.h"
#include "common/http/http_date.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto mib = ParseMemoryMib(text); mib.ok()) {
    const auto again = ParseMemoryMib(FormatMemoryMib(*mib));
    LDNN_CHECK(again.ok() && *again == *mib, text);
  } else {
    LDNN_CHECK(mib.status().code() == StatusCode::kInvalidArgument, mib.status().ToString());
  }
  WallTime time;
  if (ParseRfc3339(text, &time)) {
    WallTime again;
    LDNN_CHECK(ParseRfc3339(FormatRfc3339(time), &again), text);
    LDNN_CHECK(time - again < std::chrono::seconds(1) && again - time < std::chrono::seconds(1),
               text);
  }
  if (WallTime date; ParseHttpDate(text, &date)) {
    // What clocks are compared by.
    const Duration since = date - WallTime{};
    LDNN_CHECK(since >= Duration::zero() && since % std::chrono::seconds(1) == Duration::zero(),
               text);
  }
  return 0;
}
