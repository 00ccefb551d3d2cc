// SPDX-License-Identifier: Apache-2.0
// Words to token ids: a file of one token a line, whose number from 0 is its id, as BERT's
// vocab.txt is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/status.h"
#include "common/plan/training_values.h"
#include "trainer_function/data/byte_stream.h"

namespace lambdadnn {

inline constexpr int64_t kMaxTokens = 1 << 24;  // float32 holds every id

// BasicEnglish is torchtext's rule of that name, of which letters beyond ASCII stay as they are:
// lower case; ' . , ( ) ! ? are tokens of their own, ; : and <br /> part tokens, and " is dropped.
// Whitespace parts at spaces and tabs and changes nothing.
std::vector<std::string> SplitTokens(Tokenizer tokenizer, std::string_view text);

class Vocabulary {
 public:
  // kInvalidArgument naming file and line: a token twice, an empty line, no <pad>, too many.
  static Result<Vocabulary> Read(const DataFile& file);

  const std::string& name() const { return name_; }
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  int64_t padding() const { return padding_; }
  // That of <unk> where the token is unknown, if there is one.
  std::optional<int64_t> Find(const std::string& token) const;

 private:
  std::string name_;
  std::unordered_map<std::string, int64_t> ids_;
  int64_t padding_ = 0;
  std::optional<int64_t> unknown_;
};

}  // namespace lambdadnn
