// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/image_source.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// Whether `place` is read with the group whose first and last images these are: neighbours in one
// file, up to kReadBlockBytes.
bool IsReadWith(const ImagePlace& first, const ImagePlace& last, const ImagePlace& place) {
  const uint64_t read_to = last.offset + last.bytes;
  return place.file == first.file && place.offset >= read_to &&
         place.offset - read_to <= kMaxGapBytes &&
         place.offset + place.bytes - first.offset <= kReadBlockBytes;
}

}  // namespace

Status TooLongImage(uint64_t bytes) {
  return InvalidArgumentError("has " + std::to_string(bytes) + " bytes; images of at most " +
                              std::to_string(kMaxImageBytes) + " are read");
}

Status PlacedImages::ReadGroup(std::span<const int64_t> group, const HandleImage& handle) const {
  const ImagePlace first = Place(group.front());
  const ImagePlace last = Place(group.back());
  // A longer image is a group of its own, which nobody reads.
  if (last.bytes > kMaxImageBytes) {
    return handle(group.front(), first.label, TooLongImage(last.bytes));
  }
  LDNN_ASSIGN_OR_RETURN(
      const Bytes bytes,
      File(first.file).Read(first.offset, last.offset + last.bytes - first.offset));
  for (const int64_t index : group) {
    const ImagePlace place = Place(index);
    LDNN_RETURN_IF_ERROR(handle(index, place.label,
                                ByteView(bytes).subspan(place.offset - first.offset, place.bytes)));
  }
  return OkStatus();
}

Status PlacedImages::ForEach(std::span<const Range> samples, const HandleImage& handle) {
  std::vector<int64_t> group;
  for (const Range& range : samples) {
    for (int64_t index = range.begin; index < range.end; ++index) {
      if (!group.empty() && !IsReadWith(Place(group.front()), Place(group.back()), Place(index))) {
        LDNN_RETURN_IF_ERROR(ReadGroup(group, handle));
        group.clear();
      }
      group.push_back(index);
    }
  }
  return group.empty() ? OkStatus() : ReadGroup(group, handle);
}

SingleRead PlacedImages::single_read() const {
  const int64_t bytes = stored_bytes() / std::max<int64_t>(1, size());
  const bool neighbours = size() > 1 && Place(0).file == Place(1).file;
  const auto block = static_cast<int64_t>(kReadBlockBytes);
  const int64_t together =
      neighbours ? std::max<int64_t>(1, block / std::max<int64_t>(1, bytes)) : 1;
  return {1, bytes, 1.0 / static_cast<double>(together)};
}

}  // namespace lambdadnn
