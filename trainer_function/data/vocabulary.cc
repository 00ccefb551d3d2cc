// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/vocabulary.h"

#include <algorithm>
#include <utility>

#include "trainer_function/data/line_reader.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kWhitespace = " \t\r\n\f\v";
constexpr std::string_view kOwnTokens = "'.,()!?";
constexpr std::string_view kParting = ";:";
constexpr std::string_view kLineBreak = "<br />";
constexpr const char* kPadding = "<pad>";
constexpr const char* kUnknown = "<unk>";

bool IsOneOf(std::string_view letters, char c) { return letters.find(c) != std::string_view::npos; }

std::vector<std::string> SplitAtSpaces(std::string_view text) {
  std::vector<std::string> tokens;
  for (size_t begin = text.find_first_not_of(kWhitespace); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kWhitespace, begin), text.size());
    tokens.emplace_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kWhitespace, end);
  }
  return tokens;
}

}  // namespace

std::vector<std::string> SplitTokens(Tokenizer tokenizer, std::string_view text) {
  if (tokenizer == Tokenizer::kWhitespace) return SplitAtSpaces(text);
  std::string lower;
  for (const char c : text) {
    if (c != '"') lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  std::string spaced;
  for (size_t i = 0; i < lower.size(); ++i) {
    if (std::string_view(lower).substr(i).starts_with(kLineBreak)) {
      spaced += ' ';
      i += kLineBreak.size() - 1;
    } else if (IsOneOf(kParting, lower[i])) {
      spaced += ' ';
    } else if (IsOneOf(kOwnTokens, lower[i])) {
      spaced += {' ', lower[i], ' '};
    } else {
      spaced += lower[i];
    }
  }
  return SplitAtSpaces(spaced);
}

Result<Vocabulary> Vocabulary::Read(const DataFile& file) {
  Vocabulary vocabulary;
  vocabulary.name_ = file.name();
  LineReader lines(FilePart::Whole(file).Stream(), 0, 1);
  const auto refuse = [&](const std::string& what) {
    return InvalidArgumentError(file.name() + ", line " + std::to_string(lines.line_number()) +
                                ": " + what);
  };
  while (true) {
    auto more = lines.Next();
    if (!more.ok()) return AtFile(more.status(), file);
    if (!*more) break;
    if (lines.line().empty()) return refuse("is empty; a line is a token, remove it");
    const int64_t id = vocabulary.size();
    if (id == kMaxTokens) {
      return refuse("is one token more than the " + std::to_string(kMaxTokens) +
                    " that are read; leave out rare ones");
    }
    const auto [entry, added] = vocabulary.ids_.try_emplace(std::string(lines.line()), id);
    if (!added) {
      return refuse("the token stands in line " + std::to_string(entry->second + 1) +
                    " already; remove one of them, and mind that ids behind it change");
    }
  }
  const auto padding = vocabulary.ids_.find(kPadding);
  if (padding == vocabulary.ids_.end()) {
    return InvalidArgumentError(file.name() +
                                " has no <pad>, which fills up what is shorter than "
                                "spec.dataset.text.maxTokens; add a line with it");
  }
  vocabulary.padding_ = padding->second;
  const auto unknown = vocabulary.ids_.find(kUnknown);
  if (unknown != vocabulary.ids_.end()) vocabulary.unknown_ = unknown->second;
  return vocabulary;
}

std::optional<int64_t> Vocabulary::Find(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? unknown_ : std::optional(found->second);
}

}  // namespace lambdadnn
