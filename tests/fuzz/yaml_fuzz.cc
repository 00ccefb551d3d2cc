// SPDX-License-Identifier: Apache-2.0
// Any bytes as YAML: documents within the limits of the reader, or an error with a place.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "common/json/yaml.h"
#include "tests/fuzz/json_depth.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  const YamlParseResult parsed = ParseYaml({reinterpret_cast<const char*>(data), size});
  if (parsed.error) {
    LDNN_CHECK(parsed.error->line >= 1 && !parsed.error->message.empty(), "an error has a place");
    LDNN_CHECK(parsed.documents.empty(), "no documents beside an error");
  }
  for (const YamlDocument& document : parsed.documents) {
    CheckDepth(document.value, kMaxYamlDepth);
  }
  return 0;
}
