// SPDX-License-Identifier: Apache-2.0
// Lines of a text stream, with where they begin. Line ends are "\n" or "\r\n"; the last may lack
// one. Memory is bounded by the longest line, at most kMaxLineBytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trainer_function/data/byte_stream.h"

namespace lambdadnn {

inline constexpr size_t kMaxLineBytes = 16 << 20;

class LineReader {
 public:
  // `offset` and `line_number` are those of the stream's first byte.
  LineReader(std::unique_ptr<ByteStream> stream, uint64_t offset, int64_t line_number);

  // False at the end. The line is valid until the next call.
  Result<bool> Next();
  std::string_view line() const { return line_; }
  uint64_t line_offset() const { return line_offset_; }
  int64_t line_number() const { return line_number_; }

 private:
  std::unique_ptr<ByteStream> stream_;
  std::string buffer_;
  size_t position_ = 0;  // of the next line in buffer_
  uint64_t buffer_offset_;
  bool ended_ = false;
  std::string_view line_;
  uint64_t line_offset_ = 0;
  int64_t line_number_ = 0;
  int64_t next_number_;
};

}  // namespace lambdadnn
