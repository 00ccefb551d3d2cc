// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/s3_xml.h"

#include <algorithm>

#include "common/base/markup.h"
#include "common/base/text.h"

namespace lambdadnn {
namespace {

// S3's answers are five levels deep at most.
constexpr int kMaxDepth = 32;
// A page of 1,000 objects has some twelve for each. Each costs memory, however short its text.
constexpr int kMaxElements = 50'000;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool IsNameCharacter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':' || static_cast<unsigned char>(c) >= 0x80;
}

void AppendUtf8(uint32_t code_point, std::string* text) {
  const auto add = [&](uint32_t byte) { *text += static_cast<char>(byte); };
  if (code_point < 0x80) {
    add(code_point);
  } else if (code_point < 0x800) {
    add(0xC0 | code_point >> 6);
    add(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    add(0xE0 | code_point >> 12);
    add(0x80 | (code_point >> 6 & 0x3F));
    add(0x80 | (code_point & 0x3F));
  } else {
    add(0xF0 | code_point >> 18);
    add(0x80 | (code_point >> 12 & 0x3F));
    add(0x80 | (code_point >> 6 & 0x3F));
    add(0x80 | (code_point & 0x3F));
  }
}

class XmlParser {
 public:
  explicit XmlParser(std::string_view text) : text_(text) {}

  Result<XmlElement> Parse() {
    if (text_.starts_with("\xEF\xBB\xBF")) position_ = 3;
    LDNN_RETURN_IF_ERROR(SkipMisc());
    XmlElement root;
    LDNN_RETURN_IF_ERROR(ParseElement(0, &root));
    LDNN_RETURN_IF_ERROR(SkipMisc());
    if (position_ != text_.size()) return Error("something after the last element");
    return root;
  }

 private:
  Status Error(std::string_view what) const {
    return InvalidArgumentError("XML at byte " + std::to_string(position_) + ": " +
                                std::string(what));
  }
  bool At(std::string_view token) const { return text_.substr(position_).starts_with(token); }
  bool Take(std::string_view token) {
    if (!At(token)) return false;
    position_ += token.size();
    return true;
  }
  void SkipSpaces() {
    while (position_ < text_.size() && IsSpace(text_[position_])) ++position_;
  }
  // Moves behind the next `end`.
  Status SkipPast(std::string_view end) {
    const size_t found = text_.find(end, position_);
    if (found == text_.npos) return Error("'" + std::string(end) + "' is missing");
    position_ = found + end.size();
    return OkStatus();
  }
  // Declarations, comments and spaces outside the root.
  Status SkipMisc() {
    for (;;) {
      SkipSpaces();
      if (Take("<?")) {
        LDNN_RETURN_IF_ERROR(SkipPast("?>"));
      } else if (Take("<!--")) {
        LDNN_RETURN_IF_ERROR(SkipPast("-->"));
      } else {
        return OkStatus();
      }
    }
  }

  Result<std::string> ParseName() {
    const size_t begin = position_;
    while (position_ < text_.size() && IsNameCharacter(text_[position_])) ++position_;
    if (position_ == begin) return Error("a name is missing");
    return std::string(text_.substr(begin, position_ - begin));
  }
  // Up to '>' or '/'.
  Status SkipAttributes() {
    for (;;) {
      SkipSpaces();
      if (At(">") || At("/")) return OkStatus();
      LDNN_RETURN_IF_ERROR(ParseName().status());
      SkipSpaces();
      if (!Take("=")) return Error("an attribute without '='");
      SkipSpaces();
      if (!At("\"") && !At("'")) return Error("an attribute without quotes");
      const char quote = text_[position_++];
      LDNN_RETURN_IF_ERROR(SkipPast(std::string_view(&quote, 1)));
    }
  }
  Status ParseReference(std::string* text) {
    const size_t end = text_.substr(0, std::min(text_.size(), position_ + 12)).find(';', position_);
    if (end == text_.npos) return Error("'&' without ';'");
    const std::string_view name = text_.substr(position_ + 1, end - position_ - 1);
    if (name == "lt") {
      *text += '<';
    } else if (name == "gt") {
      *text += '>';
    } else if (name == "amp") {
      *text += '&';
    } else if (name == "quot") {
      *text += '"';
    } else if (name == "apos") {
      *text += '\'';
    } else if (const auto code_point = ParseCodePoint(name)) {
      AppendUtf8(*code_point, text);
    } else {
      return Error("unknown reference '&" + std::string(name) + ";'");
    }
    position_ = end + 1;
    return OkStatus();
  }
  static std::optional<uint32_t> ParseCodePoint(std::string_view name) {
    if (name.size() < 2 || name[0] != '#') return std::nullopt;
    const uint32_t base = name[1] == 'x' ? 16 : 10;
    name.remove_prefix(base == 16 ? 2 : 1);
    if (name.empty()) return std::nullopt;
    uint32_t value = 0;
    for (const char c : name) {
      uint32_t digit = base;
      if (c >= '0' && c <= '9') digit = static_cast<uint32_t>(c - '0');
      if (c >= 'a' && c <= 'f') digit = static_cast<uint32_t>(c - 'a' + 10);
      if (c >= 'A' && c <= 'F') digit = static_cast<uint32_t>(c - 'A' + 10);
      if (digit >= base) return std::nullopt;
      value = value * base + digit;
      if (value > 0x10FFFF) return std::nullopt;
    }
    if (value == 0 || (value >= 0xD800 && value <= 0xDFFF)) return std::nullopt;
    return value;
  }

  Status ParseElement(int depth, XmlElement* element) {
    if (depth >= kMaxDepth) return Error("elements nested too deep");
    if (++elements_ > kMaxElements) return Error("more elements than S3 ever sends");
    if (!Take("<")) return Error("'<' is missing");
    LDNN_ASSIGN_OR_RETURN(const std::string full_name, ParseName());
    const size_t colon = full_name.rfind(':');
    element->name = colon == std::string::npos ? full_name : full_name.substr(colon + 1);
    LDNN_RETURN_IF_ERROR(SkipAttributes());
    if (Take("/>")) return OkStatus();
    if (!Take(">")) return Error("'>' is missing");
    for (;;) {
      if (position_ == text_.size()) return Error("<" + full_name + "> is not closed");
      if (Take("</")) {
        if (!Take(full_name)) return Error("another tag than <" + full_name + "> is closed");
        SkipSpaces();
        if (!Take(">")) return Error("'>' is missing");
        return OkStatus();
      }
      LDNN_RETURN_IF_ERROR(ParseContent(depth, element));
    }
  }
  Status ParseContent(int depth, XmlElement* element) {
    if (Take("<!--")) return SkipPast("-->");
    if (Take("<?")) return SkipPast("?>");
    if (Take("<![CDATA[")) {
      const size_t begin = position_;
      LDNN_RETURN_IF_ERROR(SkipPast("]]>"));
      element->text += text_.substr(begin, position_ - 3 - begin);
      return OkStatus();
    }
    if (At("<!")) return Error("a document type, which S3 never sends");
    if (At("<")) {
      return ParseElement(depth + 1, &element->children.emplace_back());
    }
    if (At("&")) return ParseReference(&element->text);
    const size_t end = std::min(text_.find_first_of("<&", position_), text_.size());
    element->text += text_.substr(position_, end - position_);
    position_ = end;
    return OkStatus();
  }

  const std::string_view text_;
  size_t position_ = 0;
  int elements_ = 0;
};

// "%2F" and "+" as encoding-type=url writes them.
Result<std::string> UrlDecode(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 2 < text.size() ? digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return InvalidArgumentError("'%' without two hexadecimal digits in a listed key");
      }
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

Status WrongRoot(const XmlElement& root, std::string_view expected) {
  return InvalidArgumentError("an answer <" + root.name + "> where <" + std::string(expected) +
                              "> was expected");
}

// Names, which messages show whole.
constexpr size_t kMaxNameBytes = 100;

S3Error ErrorFrom(const XmlElement& element) {
  return {.code = element.ChildText("Code").substr(0, kMaxNameBytes),
          .message = element.ChildText("Message"),
          .key = element.ChildText("Key").substr(0, kMaxKeyBytes),
          .region = element.ChildText("Region").substr(0, kMaxNameBytes)};
}

}  // namespace

const XmlElement* XmlElement::Child(std::string_view child_name) const {
  for (const XmlElement& child : children) {
    if (child.name == child_name) return &child;
  }
  return nullptr;
}

std::string XmlElement::ChildText(std::string_view child_name) const {
  const XmlElement* const child = Child(child_name);
  return child == nullptr ? std::string() : child->text;
}

Result<XmlElement> ParseXml(std::string_view text) { return XmlParser(text).Parse(); }

std::optional<S3Error> ParseS3Error(std::string_view body) {
  const Result<XmlElement> root = ParseXml(body);
  if (!root.ok()) return std::nullopt;
  if (root->name == "Error") return ErrorFrom(*root);
  // AWS's STS and some gateways wrap it.
  const XmlElement* const inner = root->Child("Error");
  if (root->name == "ErrorResponse" && inner != nullptr) return ErrorFrom(*inner);
  return std::nullopt;
}

Result<S3ListPage> ParseListPage(std::string_view body) {
  LDNN_ASSIGN_OR_RETURN(const XmlElement root, ParseXml(body));
  if (root.name != "ListBucketResult") return WrongRoot(root, "ListBucketResult");
  const bool encoded = root.ChildText("EncodingType") == "url";
  S3ListPage page;
  page.truncated = root.ChildText("IsTruncated") == "true";
  page.next_continuation_token = root.ChildText("NextContinuationToken");
  for (const XmlElement& child : root.children) {
    if (child.name != "Contents") continue;
    ObjectInfo object{.key = child.ChildText("Key")};
    if (encoded) {
      LDNN_ASSIGN_OR_RETURN(object.key, UrlDecode(object.key));
    }
    const auto size = ParseInteger(child.ChildText("Size"));
    if (object.key.empty() || !size || *size < 0) {
      return InvalidArgumentError("a listed object without a key or a size");
    }
    object.size = static_cast<uint64_t>(*size);
    page.objects.push_back(std::move(object));
  }
  if (page.truncated && page.next_continuation_token.empty() && page.objects.empty()) {
    return InvalidArgumentError("a truncated list without a continuation token");
  }
  return page;
}

Result<std::vector<S3Error>> ParseDeleteResult(std::string_view body) {
  LDNN_ASSIGN_OR_RETURN(const XmlElement root, ParseXml(body));
  if (root.name != "DeleteResult") return WrongRoot(root, "DeleteResult");
  std::vector<S3Error> errors;
  for (const XmlElement& child : root.children) {
    if (child.name == "Error") errors.push_back(ErrorFrom(child));
  }
  return errors;
}

Result<std::string> ParseUploadId(std::string_view body) {
  LDNN_ASSIGN_OR_RETURN(const XmlElement root, ParseXml(body));
  if (root.name != "InitiateMultipartUploadResult") {
    return WrongRoot(root, "InitiateMultipartUploadResult");
  }
  std::string id = root.ChildText("UploadId");
  if (id.empty()) return InvalidArgumentError("a multipart upload without an id");
  return id;
}

std::string DeleteRequestXml(std::span<const std::string> keys) {
  std::string xml = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>";
  for (const std::string& key : keys) {
    xml += "<Object><Key>" + EscapeMarkup(key) + "</Key></Object>";
  }
  return xml + "</Delete>";
}

std::string CompleteUploadXml(std::span<const std::string> tags) {
  std::string xml = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (size_t i = 0; i < tags.size(); ++i) {
    xml += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" +
           EscapeMarkup(tags[i]) + "</ETag></Part>";
  }
  return xml + "</CompleteMultipartUpload>";
}

}  // namespace lambdadnn
