// SPDX-License-Identifier: Apache-2.0
// Expected outcomes as values: Status, and Result<T> = a T or the Status that says why there is
// none.
//
// Codes are google.rpc's and carry the retry decision: kUnavailable = retry this very call,
// kAborted = retry one level up (re-read, then try again), kFailedPrecondition = do not retry
// before something else has been changed. A message says what was being done to which object and
// what to do next. Both types are plain values: copy and move them freely, use one object from one
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/check.h"

namespace lambdadnn {

enum class StatusCode {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "NOT_FOUND" and the like; the spelling is part of the wire formats.
std::string_view StatusCodeName(StatusCode code);
// The code with that name; kUnknown when there is none.
StatusCode StatusCodeFromName(std::string_view name);

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same code with "context: " before the message; OK stays OK.
  Status WithContext(std::string_view context) const;
  // "NOT_FOUND: message", or "OK".
  std::string ToString() const;

  friend bool operator==(const Status&, const Status&) = default;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() { return {}; }
Status CancelledError(std::string message);
Status UnknownError(std::string message);
Status InvalidArgumentError(std::string message);
Status DeadlineExceededError(std::string message);
Status NotFoundError(std::string message);
Status AlreadyExistsError(std::string message);
Status PermissionDeniedError(std::string message);
Status ResourceExhaustedError(std::string message);
Status FailedPreconditionError(std::string message);
Status AbortedError(std::string message);
Status OutOfRangeError(std::string message);
Status UnimplementedError(std::string message);
Status InternalError(std::string message);
Status UnavailableError(std::string message);
Status DataLossError(std::string message);
Status UnauthenticatedError(std::string message);

template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose, so that both `return value;` and `return NotFoundError(...)` read well.
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    LDNN_CHECK(!status_.ok(), "a Result without a value needs an error");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& value() & {
    LDNN_CHECK(ok(), status_.ToString());
    return *value_;
  }
  const T& value() const& {
    LDNN_CHECK(ok(), status_.ToString());
    return *value_;
  }
  T&& value() && {
    LDNN_CHECK(ok(), status_.ToString());
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

// Leaves the function with the status of `expression` unless that is OK.
#define LDNN_RETURN_IF_ERROR(expression)                                       \
  do {                                                                         \
    if (::lambdadnn::Status ldnn_status_ = (expression); !ldnn_status_.ok()) { \
      return ldnn_status_;                                                     \
    }                                                                          \
  } while (false)

// `LDNN_ASSIGN_OR_RETURN(auto x, F());`: x = the value of F(), or leaves with its status.
#define LDNN_ASSIGN_OR_RETURN(declaration, expression) \
  LDNN_ASSIGN_OR_RETURN_(LDNN_CONCAT_(ldnn_result_, __LINE__), declaration, expression)
#define LDNN_CONCAT_(a, b) LDNN_CONCAT2_(a, b)
#define LDNN_CONCAT2_(a, b) a##b
#define LDNN_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                   \
  if (!result.ok()) return result.status();                     \
  declaration = std::move(result).value()

}  // namespace lambdadnn
