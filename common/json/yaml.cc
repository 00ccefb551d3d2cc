// SPDX-License-Identifier: Apache-2.0
#include "common/json/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "common/base/text.h"
#include "common/base/utf8.h"

namespace lambdadnn {
namespace {

// Leaves the library's parser with an error of ours.
struct BuildError {
  YAML::Mark mark;
  std::string message;
};

std::optional<Json> ParseYamlInteger(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view digits = negative || text.starts_with('+') ? text.substr(1) : text;
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0o")) {
    base = digits[1] == 'x' ? 16 : 8;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits.front() == '0') {
    return std::nullopt;  // octal to some readers, decimal to others
  }
  uint64_t magnitude = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (digits.empty() || read.ec != std::errc() || read.ptr != digits.data() + digits.size()) {
    return std::nullopt;
  }
  if (!negative) return Json(magnitude);
  if (magnitude > uint64_t{1} << 63) return std::nullopt;
  return Json(static_cast<int64_t>(-magnitude));
}

// A plain scalar as kubectl reads it.
Json ResolvePlain(const std::string& text) {
  const std::string lower = LowerCase(text);
  for (const char* word : {"true", "yes", "on", "y"}) {
    if (lower == word) return true;
  }
  for (const char* word : {"false", "no", "off", "n"}) {
    if (lower == word) return false;
  }
  if (const auto integer = ParseYamlInteger(text)) return *integer;
  const bool may_be_number = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  if (may_be_number) {
    std::string_view number = text;
    if (number.starts_with('+')) number.remove_prefix(1);
    if (number.size() > 1 && number[0] == '0' && number[1] >= '0' && number[1] <= '9') return text;
    if (const auto value = ParseDouble(number)) return *value;
  }
  return text;
}

// A text and where its lines begin, so that finding a line takes no walk through those before it.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') begins_.push_back(i + 1);
    }
  }
  std::string_view text() const { return text_; }
  // Where line `line` (from 0) begins; the end of the text when there is none.
  size_t OffsetOf(int line) const {
    const auto index = static_cast<size_t>(std::max(line, 0));
    return index < begins_.size() ? begins_[index] : text_.size();
  }

 private:
  const std::string_view text_;
  std::vector<size_t> begins_ = {0};
};

// The library takes the end of the file for the end of a quoted text.
bool IsUnclosedQuote(const Lines& lines, const YAML::Mark& mark) {
  const std::string_view text = lines.text();
  const size_t begin = lines.OffsetOf(mark.line) + static_cast<size_t>(mark.column);
  if (begin >= text.size() || (text[begin] != '"' && text[begin] != '\'')) return false;
  const char quote = text[begin];
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text[i] == quote) {
      return false;  // a doubled single quote counts as closed: the rest of it is checked as well
    }
  }
  return true;
}

// Of all paths of a document together: as many values as there may be, with paths of 600 bytes.
constexpr size_t kMaxPathBytes = kMaxYamlNodes * 600;

class DocumentBuilder final : public YAML::EventHandler {
 public:
  explicit DocumentBuilder(const Lines& lines) : text_lines_(lines) {}
  YamlDocument TakeDocument() { return std::move(document_); }
  bool has_content() const { return has_content_; }

  const YAML::Mark& start() const { return start_; }

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = mark; }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (TakesKey()) return TakeKey(mark, "");
    Scalar(mark, anchor, nullptr);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool text = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!text && tag != "?" && !tag.empty()) {
      throw BuildError{mark, "tags such as " + tag + " are not allowed; remove it"};
    }
    if (tag == "!" && IsUnclosedQuote(text_lines_, mark)) {
      throw BuildError{mark, "a quote is not closed"};
    }
    if (TakesKey()) {
      if (!text && value == "<<") {
        throw BuildError{mark, "merge keys (<<) are not allowed; write the fields out"};
      }
      return TakeKey(mark, value);
    }
    Scalar(mark, anchor, text ? Json(value) : ResolvePlain(value));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (TakesKey()) throw BuildError{mark, "an alias cannot be the name of a field"};
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw BuildError{mark, "an alias cannot stand inside its anchor"};
    if (frames_.size() + found->second.levels > kMaxYamlDepth) throw TooDeep(mark);
    Count(mark, found->second.nodes);
    RememberLine(mark, ChildPath());
    Attach(found->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Json::array());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, Json::object());
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    Json container;
    std::string path;
    YAML::anchor_t anchor;
    size_t nodes = 1;
    size_t levels = 1;                     // of maps and lists, itself included
    std::optional<std::string> key;        // read, its value still to come
    std::map<std::string, int> key_lines;  // of a map
  };
  struct Anchored {
    Json value;
    size_t nodes;
    size_t levels;  // 0: a scalar
  };

  static BuildError TooDeep(const YAML::Mark& mark) {
    return {mark, "nested more than " + std::to_string(kMaxYamlDepth) + " levels deep"};
  }

  bool TakesKey() const {
    return !frames_.empty() && frames_.back().container.is_object() && !frames_.back().key;
  }

  void TakeKey(const YAML::Mark& mark, const std::string& key) {
    if (key.empty()) throw BuildError{mark, "a field has no name"};
    Frame& frame = frames_.back();
    const auto [first, added] = frame.key_lines.emplace(key, mark.line + 1);
    if (!added) {
      throw BuildError{mark, "\"" + key + "\" is given twice, here and at line " +
                                 std::to_string(first->second) + "; remove one"};
    }
    frame.key = key;
    Remember(mark, ChildPath());
  }

  // Where `path` stands. Each holds the names of all fields above it.
  void Remember(const YAML::Mark& mark, const std::string& path) {
    path_bytes_ += path.size();
    if (path_bytes_ > kMaxPathBytes) {
      throw BuildError{mark, "the names of the fields around this one are too long"};
    }
    document_.lines.emplace(path, mark.line + 1);
  }

  std::string ChildPath() const {
    if (frames_.empty()) return "";
    const Frame& frame = frames_.back();
    if (frame.container.is_array()) {
      return frame.path + "[" + std::to_string(frame.container.size()) + "]";
    }
    return frame.path.empty() ? *frame.key : frame.path + "." + *frame.key;
  }

  void Count(const YAML::Mark& mark, size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > kMaxYamlNodes) {
      throw BuildError{mark, "the document has more than " + std::to_string(kMaxYamlNodes) +
                                 " values once its aliases are expanded; that is no job"};
    }
  }

  void RememberLine(const YAML::Mark& mark, const std::string& path) {
    if (!has_content_) document_.line = mark.line + 1;
    has_content_ = true;
    if (!path.empty()) Remember(mark, path);
  }

  void Scalar(const YAML::Mark& mark, YAML::anchor_t anchor, Json value) {
    Count(mark, 1);
    // An empty document is a null at its top.
    if (!frames_.empty() || !value.is_null()) RememberLine(mark, ChildPath());
    Anchored scalar{std::move(value), 1, 0};
    if (anchor != YAML::NullAnchor) anchors_[anchor] = scalar;
    Attach(std::move(scalar));
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Json empty) {
    if (tag != "?" && tag != "!" && !tag.empty()) {
      throw BuildError{mark, "tags such as " + tag + " are not allowed; remove it"};
    }
    if (TakesKey()) {
      throw BuildError{mark, "a map or list cannot be the name of a field; is a '}' missing?"};
    }
    if (frames_.size() >= kMaxYamlDepth) throw TooDeep(mark);
    Count(mark, 1);
    const std::string path = ChildPath();
    RememberLine(mark, path);
    frames_.push_back({std::move(empty), path, anchor, 1, 1, std::nullopt, {}});
  }

  void Close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    Anchored container{std::move(frame.container), frame.nodes, frame.levels};
    if (frame.anchor != YAML::NullAnchor) anchors_[frame.anchor] = container;
    Attach(std::move(container));
  }

  void Attach(Anchored part) {
    if (frames_.empty()) {
      document_.value = std::move(part.value);
      return;
    }
    Frame& frame = frames_.back();
    frame.nodes += part.nodes;
    frame.levels = std::max(frame.levels, part.levels + 1);
    if (frame.container.is_array()) {
      frame.container.push_back(std::move(part.value));
    } else {
      frame.container[*frame.key] = std::move(part.value);
      frame.key.reset();
    }
  }

  const Lines& text_lines_;
  YAML::Mark start_;
  YamlDocument document_;
  bool has_content_ = false;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  size_t nodes_ = 0;
  size_t path_bytes_ = 0;
};

// Whether a line in [from, to] (from 1) begins a document or ends one.
bool HasSeparator(const Lines& lines, int from, int to) {
  for (int line = from; line <= to; ++line) {
    const std::string_view rest = lines.text().substr(lines.OffsetOf(line - 1));
    if (rest.starts_with("---") || rest.starts_with("...")) return true;
  }
  return false;
}

// The first line whose indentation has a tab, from 1; 0 = none.
int LineWithTabIndent(std::string_view text) {
  int number = 0;
  for (const std::string& line : Split(text, '\n')) {
    ++number;
    const size_t content = line.find_first_not_of(" \t\r");
    const size_t tab = line.find('\t');
    if (content != std::string::npos && tab < content) return number;
  }
  return 0;
}

// The library's messages, in words that say what to do.
std::string Explain(const std::string& message) {
  if (message.find("end of map not found") != std::string::npos ||
      message.find("illegal map value") != std::string::npos) {
    return "the indentation does not fit the lines above; line the field up with its neighbours";
  }
  if (message.find("end of sequence not found") != std::string::npos) {
    return "a list is not closed, or its lines are not aligned";
  }
  if (message.find("end of map flow not found") != std::string::npos) return "a '}' is missing";
  if (message.find("end of sequence flow not found") != std::string::npos) {
    return "a ']' is missing";
  }
  if (message.find("illegal EOF in scalar") != std::string::npos) return "a quote is not closed";
  if (message.find("unknown token") != std::string::npos) {
    return "a value cannot begin with this character; put it in quotes";
  }
  if (message.find("anchor is not defined") != std::string::npos) {
    return "this alias (*) has no anchor (&) above";
  }
  if (message.find("illegal flow end") != std::string::npos) {
    return "a '}' or ']' without the one that opens it";
  }
  return message;
}

YamlParseResult Failed(int line, int column, std::string message) {
  YamlParseResult result;
  result.error = YamlError{std::max(line, 1), std::max(column, 1), std::move(message)};
  return result;
}

}  // namespace

int YamlDocument::LineOf(std::string_view path) const {
  while (!path.empty()) {
    if (const auto found = lines.find(path); found != lines.end()) return found->second;
    const size_t cut = path.find_last_of(".[");
    path = cut == std::string_view::npos ? std::string_view() : path.substr(0, cut);
  }
  return line;
}

YamlParseResult ParseYaml(std::string_view text) {
  if (text.size() > kMaxYamlBytes) {
    return Failed(1, 1, "larger than 1 MiB; a job file is a page or two");
  }
  if (text.find('\0') != std::string_view::npos) {
    return Failed(1, 1, "holds zero bytes; this is not a text file");
  }
  if (const size_t bad = FirstInvalidUtf8(text); bad != std::string_view::npos) {
    const auto newlines = std::count(text.begin(), text.begin() + static_cast<long>(bad), '\n');
    return Failed(static_cast<int>(newlines) + 1, 1, "is not UTF-8 text; save the file as UTF-8");
  }
  const Lines lines(text);
  YamlParseResult result;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    int previous_start = -1;
    for (;;) {
      DocumentBuilder builder(lines);
      if (!parser.HandleNextDocument(builder)) break;
      // At some characters the library yields one empty document after another without moving on.
      if (builder.start().pos == previous_start) {
        return Failed(builder.start().line + 1, builder.start().column + 1,
                      "nothing can begin with this character here; remove it or put it in quotes");
      }
      previous_start = builder.start().pos;
      if (!builder.has_content()) continue;
      YamlDocument document = builder.TakeDocument();
      const int previous = result.documents.empty() ? 0 : result.documents.back().line;
      if (previous > 0 && !HasSeparator(lines, previous, document.line)) {
        return Failed(document.line, 1,
                      "does not go on from the lines above; begin the next "
                      "document with ---, or align the line");
      }
      result.documents.push_back(std::move(document));
    }
  } catch (const BuildError& error) {
    return Failed(error.mark.line + 1, error.mark.column + 1, error.message);
  } catch (const YAML::Exception& error) {
    if (const int line = LineWithTabIndent(text); line > 0 && line <= error.mark.line + 2) {
      return Failed(line, 1, "a tab in the indentation; YAML wants spaces there");
    }
    return Failed(error.mark.line + 1, error.mark.column + 1, Explain(error.msg));
  }
  return result;
}

}  // namespace lambdadnn
