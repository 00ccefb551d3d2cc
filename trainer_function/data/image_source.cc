// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/image_source.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// Between images that are read by one request.
constexpr uint64_t kMaxGapBytes = 64 << 10;

}  // namespace

Status TooLongImage(uint64_t bytes) {
  return InvalidArgumentError("has " + std::to_string(bytes) + " bytes; images of at most " +
                              std::to_string(kMaxImageBytes) + " are read");
}

// Of samples that are read together: neighbours in one file, up to kReadBlockBytes.
int64_t PlacedImages::GroupEnd(int64_t begin, int64_t end) const {
  const ImagePlace first = Place(begin);
  uint64_t read_to = first.offset + first.bytes;
  for (int64_t next = begin + 1; next < end; ++next) {
    const ImagePlace place = Place(next);
    if (place.file != first.file || place.offset < read_to ||
        place.offset - read_to > kMaxGapBytes ||
        place.offset + place.bytes - first.offset > kReadBlockBytes) {
      return next;
    }
    read_to = place.offset + place.bytes;
  }
  return end;
}

Status PlacedImages::ReadGroup(const Range& group, const HandleImage& handle) const {
  const ImagePlace first = Place(group.begin);
  const ImagePlace last = Place(group.end - 1);
  // A longer image is a group of its own, which nobody reads.
  if (last.bytes > kMaxImageBytes) {
    return handle(group.begin, first.label, TooLongImage(last.bytes));
  }
  LDNN_ASSIGN_OR_RETURN(
      const Bytes bytes,
      File(first.file).Read(first.offset, last.offset + last.bytes - first.offset));
  for (int64_t index = group.begin; index < group.end; ++index) {
    const ImagePlace place = Place(index);
    LDNN_RETURN_IF_ERROR(handle(index, place.label,
                                ByteView(bytes).subspan(place.offset - first.offset, place.bytes)));
  }
  return OkStatus();
}

Status PlacedImages::ForEach(std::span<const Range> samples, const HandleImage& handle) {
  for (const Range& range : samples) {
    for (Range group{range.begin, range.begin}; group.begin < range.end; group.begin = group.end) {
      group.end = GroupEnd(group.begin, range.end);
      LDNN_RETURN_IF_ERROR(ReadGroup(group, handle));
    }
  }
  return OkStatus();
}

SingleRead PlacedImages::single_read() const {
  return {1, stored_bytes() / std::max<int64_t>(1, size())};
}

}  // namespace lambdadnn
