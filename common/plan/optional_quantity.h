// SPDX-License-Identifier: Apache-2.0
// A number of a profile or a platform that may not be known, and where it came from. Not known is
// neither zero nor without limit: what a model takes instead, operator/planner/assumptions.h says.
#pragma once

#include <type_traits>

namespace lambdadnn {

enum class Origin {
  kUnknown,
  kDefault,  // ours, since nothing was said
  kMeasured,
  kGiven,  // by a file or a person
};

class OptionalQuantity {
 public:
  constexpr OptionalQuantity() = default;
  // Known; a number that is set without a word is given.
  constexpr OptionalQuantity(double value, Origin origin = Origin::kGiven)
      : value_(value), origin_(origin) {}

  constexpr bool known() const { return origin_ != Origin::kUnknown; }
  constexpr Origin origin() const { return origin_; }
  constexpr bool stated() const { return known() && origin_ != Origin::kMeasured; }
  constexpr double Or(double otherwise) const { return known() ? value_ : otherwise; }
  // As a term of a sum: what is not known adds nothing.
  constexpr operator double() const { return value_; }

  // The same number, or neither is known; where it came from does not count.
  friend constexpr bool operator==(const OptionalQuantity& a, const OptionalQuantity& b) {
    return a.known() == b.known() && a.value_ == b.value_;
  }
  template <typename T>
    requires std::is_arithmetic_v<T>
  friend constexpr bool operator==(const OptionalQuantity& a, T b) {
    return a.value_ == static_cast<double>(b);
  }

 private:
  double value_ = 0;  // zero where it is not known
  Origin origin_ = Origin::kUnknown;
};

}  // namespace lambdadnn
