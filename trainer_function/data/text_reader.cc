// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/text_reader.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/text.h"
#include "trainer_function/data/line_index.h"
#include "trainer_function/data/replaced_samples.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kLabelMark = "__label__";
constexpr std::string_view kSpaces = " \t";

struct LabeledText {
  std::string_view label;
  std::string_view text;
};

std::string Shown(std::string_view text) { return "'" + ShownStart(text) + "'"; }

Result<LabeledText> TakeLabel(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kSpaces));
  if (!word.starts_with(kLabelMark) || word.size() == kLabelMark.size()) {
    return InvalidArgumentError("begins with " + Shown(word) +
                                ", not with a label such as __label__sports; write it before the "
                                "text");
  }
  std::string_view text = line.substr(word.size());
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  if (text.starts_with(kLabelMark)) {
    return InvalidArgumentError("has two labels; a sample has one class, leave the others out");
  }
  return LabeledText{word.substr(kLabelMark.size()), text};
}

std::vector<std::string> InOrder(const std::set<std::string>& names) {
  std::vector<std::string> ordered(names.begin(), names.end());
  const auto number = [](const std::string& name) { return ParseInteger(name); };
  if (std::all_of(ordered.begin(), ordered.end(),
                  [&](const std::string& name) { return number(name).has_value(); })) {
    std::stable_sort(
        ordered.begin(), ordered.end(),
        [&](const std::string& a, const std::string& b) { return *number(a) < *number(b); });
  }
  return ordered;
}

class TextReader final : public SampleReader {
 public:
  TextReader(DataFile file, const TextOptions& options)
      : lines_(std::move(file)),
        options_(options),
        bad_(options.on_bad_sample, options.max_bad_samples) {}

  Status Open() {
    if (options_.text.max_tokens < 1 || options_.text.max_tokens > kMaxSampleElements) {
      return InvalidArgumentError("spec.dataset.text.maxTokens: must be between 1 and " +
                                  std::to_string(kMaxSampleElements));
    }
    for (const std::string& name : options_.class_names) {
      numbers_.emplace(name, static_cast<int64_t>(numbers_.size()));
    }
    std::set<std::string> found;
    LDNN_RETURN_IF_ERROR(lines_.Scan(
        [&](std::string_view line, int64_t number) { return ScanLine(line, number, found); }));
    if (lines_.samples() == 0) {
      return InvalidArgumentError(lines_.name() + " holds no samples; give a file with some");
    }
    const std::vector<std::string> names =
        options_.class_names.empty() ? InOrder(found) : options_.class_names;
    if (options_.classes.count > 0 && std::ssize(names) > options_.classes.count) {
      return InvalidArgumentError(lines_.name() + " has " + std::to_string(names.size()) +
                                  " labels, more than spec.dataset.classes: " +
                                  std::to_string(options_.classes.count) + "; correct one of them");
    }
    for (const std::string& name : names) {
      numbers_.emplace(name, static_cast<int64_t>(numbers_.size()));
    }
    layout_.samples = lines_.samples();
    layout_.feature_shape = {options_.text.max_tokens};
    layout_.classes =
        options_.classes.count > 0 ? options_.classes.count : static_cast<int>(names.size());
    layout_.class_names = names;
    layout_.padding = options_.vocabulary == nullptr ? 0 : options_.vocabulary->padding();
    layout_.vocabulary = options_.vocabulary == nullptr ? 0 : options_.vocabulary->size();
    layout_.stored_bytes = static_cast<int64_t>(lines_.stored_bytes());
    layout_.single_read = lines_.single_read();
    return OkStatus();
  }

  const SampleLayout& layout() const override { return layout_; }
  int64_t bad_samples() const override { return bad_.count(); }
  void ForgetBadSamples() override { bad_.Forget(); }

  Status Read(std::span<const Range> ranges, SampleBlock& out) override {
    return lines_.Read(ranges, [&](int64_t sample, std::string_view line, int64_t number) {
      const Status added = Add(line, out);
      if (added.ok()) return OkStatus();
      return bad_.Replace(sample, layout_.samples, AtLine(number, added),
                          [&](int64_t other) { return AddOther(other, out); });
    });
  }

 private:
  Result<LineIndex::Scanned> ScanLine(std::string_view line, int64_t number,
                                      std::set<std::string>& found) const {
    if (options_.classes.first > 0 && lines_.samples() == options_.classes.first) {
      return LineIndex::Scanned::kEnd;
    }
    const auto labeled = TakeLabel(line);
    if (!labeled.ok()) return AtLine(number, labeled.status());
    std::string name(labeled->label);
    if (!numbers_.empty()) {
      if (numbers_.contains(name)) return LineIndex::Scanned::kSample;
      return AtLine(number, InvalidArgumentError("the training samples have no label " +
                                                 Shown(name) + "; correct it, or remove the line"));
    }
    found.insert(std::move(name));
    if (found.size() > static_cast<size_t>(kMaxClasses)) {
      return AtLine(number, InvalidArgumentError("has one label more than the " +
                                                 std::to_string(kMaxClasses) + " that are read"));
    }
    return LineIndex::Scanned::kSample;
  }

  Status AtLine(int64_t number, const Status& why) const {
    return Status(why.code(),
                  lines_.name() + ", line " + std::to_string(number) + ": " + why.message());
  }

  // Appends the sample, or nothing.
  Status Add(std::string_view line, SampleBlock& out) const {
    LDNN_ASSIGN_OR_RETURN(const LabeledText labeled, TakeLabel(line));
    const auto label = numbers_.find(labeled.label);
    if (label == numbers_.end()) {
      return DataLossError("its label was not there when the file was opened; start again");
    }
    LDNN_ASSIGN_OR_RETURN(std::vector<float> ids, Ids(labeled.text));
    ids.resize(static_cast<size_t>(options_.text.max_tokens), static_cast<float>(*layout_.padding));
    out.values.insert(out.values.end(), ids.begin(), ids.end());
    out.labels.push_back(label->second);
    return OkStatus();
  }

  // At most max_tokens, and at least one.
  Result<std::vector<float>> Ids(std::string_view text) const {
    const Tokenizer tokenizer =
        options_.vocabulary == nullptr ? Tokenizer::kWhitespace : options_.text.tokenizer;
    std::vector<float> ids;
    for (const std::string& token : SplitTokens(tokenizer, text)) {
      LDNN_ASSIGN_OR_RETURN(const int64_t id, IdOf(token));
      if (std::ssize(ids) < options_.text.max_tokens) ids.push_back(static_cast<float>(id));
    }
    if (ids.empty()) return InvalidArgumentError("has no text; remove the line");
    return ids;
  }

  Result<int64_t> IdOf(const std::string& token) const {
    if (options_.vocabulary == nullptr) {
      const auto id = ParseInteger(token);
      if (id && *id >= 0 && *id < kMaxTokens) return *id;
      return InvalidArgumentError(Shown(token) + " is no token id from 0 to " +
                                  std::to_string(kMaxTokens - 1) +
                                  "; correct it, or set spec.dataset.text.vocabulary for words");
    }
    if (const auto id = options_.vocabulary->Find(token)) return *id;
    return InvalidArgumentError("the token " + Shown(token) + " is not in " +
                                options_.vocabulary->name() + ", which has no <unk>; add either");
  }

  // Whether it is a good one.
  Result<bool> AddOther(int64_t sample, SampleBlock& out) const {
    const Range range = {sample, sample + 1};
    bool added = false;
    LDNN_RETURN_IF_ERROR(
        lines_.Read(std::span(&range, 1), [&](int64_t, std::string_view line, int64_t) {
          added = Add(line, out).ok();
          return OkStatus();
        }));
    return added;
  }

  LineIndex lines_;
  const TextOptions options_;
  ReplacedSamples bad_;
  std::map<std::string, int64_t, std::less<>> numbers_;
  SampleLayout layout_;
};

}  // namespace

Result<std::unique_ptr<SampleReader>> OpenText(DataFile file, const TextOptions& options) {
  auto reader = std::make_unique<TextReader>(std::move(file), options);
  LDNN_RETURN_IF_ERROR(reader->Open());
  return std::unique_ptr<SampleReader>(std::move(reader));
}

}  // namespace lambdadnn
