// SPDX-License-Identifier: Apache-2.0
// Any answer of a server that calls itself S3: a value or an error, and keys that go back in.
#include <cstdint>
#include <string_view>

#include "common/base/check.h"
#include "common/base/markup.h"
#include "common/objectstore/s3_xml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<XmlElement> root = ParseXml(text);
  if (root.ok()) {
    LDNN_CHECK(!root->name.empty() || text.find(":") != text.npos, "an element without a name");
    const Result<XmlElement> again = ParseXml("<a>" + EscapeMarkup(root->text) + "</a>");
    LDNN_CHECK(again.ok() && again->text == root->text, "escaped text does not come back");
  }
  (void)ParseS3Error(text);
  (void)ParseUploadId(text);
  (void)ParseDeleteResult(text);
  const Result<S3ListPage> page = ParseListPage(text);
  if (page.ok()) {
    for (const ObjectInfo& object : page->objects) {
      LDNN_CHECK(!object.key.empty(), "a listed object without a key");
    }
  }
  return 0;
}
