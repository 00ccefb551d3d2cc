// SPDX-License-Identifier: Apache-2.0
// The points of one curve, as many as a chart can show: of a long run evenly spaced ones, the first
// and the newest among them. Points are told apart by their index, an iteration or an epoch, and
// come roughly in that order. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace lambdadnn {

template <typename Point, int64_t Point::* kIndex>
class ChartSeries {
 public:
  // So many points at most, and half as many at least of a long run.
  static constexpr size_t kMaxPoints = 512;
  // The newest ones are all kept, so that a point that comes a little late finds its place.
  static constexpr size_t kNewest = 32;

  // False: there is one of this index, or it is older than all of the newest.
  bool Add(Point point) {
    const auto place = std::lower_bound(newest_.begin(), newest_.end(), point.*kIndex, IsBefore);
    if (place != newest_.end() && (*place).*kIndex == point.*kIndex) return false;
    if (place == newest_.begin() && !older_.empty()) return false;
    newest_.insert(place, std::move(point));
    if (newest_.size() > kNewest) {
      Keep(std::move(newest_.front()));
      newest_.pop_front();
    }
    return true;
  }
  bool Contains(int64_t index) const {
    const auto place = std::lower_bound(newest_.begin(), newest_.end(), index, IsBefore);
    if (place == newest_.begin() && !older_.empty()) return true;  // or passed over
    return place != newest_.end() && (*place).*kIndex == index;
  }

  bool empty() const { return newest_.empty(); }
  const Point& newest() const { return newest_.back(); }
  // The one `steps` before the newest of those that are kept whole, or the oldest of them.
  const Point& Before(size_t steps) const {
    return newest_[newest_.size() - 1 - std::min(steps, newest_.size() - 1)];
  }
  // Ascending.
  std::vector<Point> Points() const {
    std::vector<Point> points = older_;
    points.insert(points.end(), newest_.begin(), newest_.end());
    return points;
  }

 private:
  static bool IsBefore(const Point& point, int64_t index) { return point.*kIndex < index; }

  void Keep(Point point) {
    if (!older_.empty() && point.*kIndex - older_.back().*kIndex < Spacing()) return;
    older_.push_back(std::move(point));
    if (older_.size() + kNewest <= kMaxPoints) return;
    size_t kept = 0;
    for (size_t i = 0; i < older_.size(); i += 2) older_[kept++] = older_[i];
    older_.resize(kept);
  }
  // Of the points so far: every one is kept until they were thinned for the first time.
  int64_t Spacing() const {
    return (older_.back().*kIndex - older_.front().*kIndex) / static_cast<int64_t>(older_.size());
  }

  std::vector<Point> older_;  // ascending, thinned; before all of newest_
  std::deque<Point> newest_;  // ascending
};

}  // namespace lambdadnn
