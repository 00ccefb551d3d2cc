// SPDX-License-Identifier: Apache-2.0
// The XML of S3's answers: a small strict parser (elements, text, the five entities and character
// references, CDATA; attributes are skipped, document types refused) and the answers that
// S3ObjectStore reads. Any bytes give a value or kInvalidArgument, in time linear in their number.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {

struct XmlElement {
  std::string name;  // without namespace prefix
  std::string text;  // of itself, not of its children
  std::vector<XmlElement> children;

  // The first child with that name, or null.
  const XmlElement* Child(std::string_view child_name) const;
  // Its text; empty when there is none.
  std::string ChildText(std::string_view child_name) const;
};

Result<XmlElement> ParseXml(std::string_view text);

struct S3Error {
  std::string code;
  std::string message;
  std::string key;
  std::string region;
};
// The error of an answer's body; nullopt when there is none in it.
std::optional<S3Error> ParseS3Error(std::string_view body);

struct S3ListPage {
  std::vector<ObjectInfo> objects;
  std::string next_continuation_token;
  bool truncated = false;
};
// An answer to ListObjectsV2 with encoding-type=url.
Result<S3ListPage> ParseListPage(std::string_view body);
// What a multi-object delete could not delete.
Result<std::vector<S3Error>> ParseDeleteResult(std::string_view body);
Result<std::string> ParseUploadId(std::string_view body);

std::string DeleteRequestXml(std::span<const std::string> keys);
// `tags` of the parts 1, 2, …
std::string CompleteUploadXml(std::span<const std::string> tags);

}  // namespace lambdadnn
