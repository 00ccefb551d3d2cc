// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/line_reader.h"

#include <utility>

namespace lambdadnn {
namespace {

constexpr size_t kReadBytes = 256 << 10;

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteStream> stream, uint64_t offset, int64_t line_number)
    : stream_(std::move(stream)), buffer_offset_(offset), next_number_(line_number) {}

Result<bool> LineReader::Next() {
  size_t searched = position_;
  size_t end = buffer_.find('\n', searched);
  while (end == std::string::npos && !ended_) {
    searched = buffer_.size() - position_;
    buffer_offset_ += position_;
    buffer_.erase(0, position_);
    position_ = 0;
    if (buffer_.size() > kMaxLineBytes) {
      return InvalidArgumentError("line " + std::to_string(next_number_) + " is longer than " +
                                  std::to_string(kMaxLineBytes) + " bytes; is it a text file?");
    }
    buffer_.resize(searched + kReadBytes);
    LDNN_ASSIGN_OR_RETURN(
        const size_t count,
        stream_->Read(std::as_writable_bytes(std::span(buffer_).subspan(searched))));
    buffer_.resize(searched + count);
    ended_ = count == 0;
    end = buffer_.find('\n', searched);
  }
  if (end == std::string::npos) end = buffer_.size();
  if (position_ >= buffer_.size()) return false;
  line_ = std::string_view(buffer_).substr(position_, end - position_);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  line_offset_ = buffer_offset_ + position_;
  line_number_ = next_number_++;
  position_ = end + 1;
  return true;
}

}  // namespace lambdadnn
