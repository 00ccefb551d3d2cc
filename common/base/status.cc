// SPDX-License-Identifier: Apache-2.0
#include "common/base/status.h"

#include <array>

namespace lambdadnn {
namespace {

constexpr std::array<std::string_view, 17> kNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

}  // namespace

std::string_view StatusCodeName(StatusCode code) { return kNames[static_cast<size_t>(code)]; }

StatusCode StatusCodeFromName(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<StatusCode>(i);
  }
  return StatusCode::kUnknown;
}

Status Status::WithContext(std::string_view context) const {
  if (ok()) return *this;
  return Status(code_, std::string(context) + ": " + message_);
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return std::string(StatusCodeName(code_)) + ": " + message_;
}

#define LDNN_DEFINE_ERROR(name)                             \
  Status name##Error(std::string message) {                 \
    return Status(StatusCode::k##name, std::move(message)); \
  }
LDNN_DEFINE_ERROR(Cancelled)
LDNN_DEFINE_ERROR(Unknown)
LDNN_DEFINE_ERROR(InvalidArgument)
LDNN_DEFINE_ERROR(DeadlineExceeded)
LDNN_DEFINE_ERROR(NotFound)
LDNN_DEFINE_ERROR(AlreadyExists)
LDNN_DEFINE_ERROR(PermissionDenied)
LDNN_DEFINE_ERROR(ResourceExhausted)
LDNN_DEFINE_ERROR(FailedPrecondition)
LDNN_DEFINE_ERROR(Aborted)
LDNN_DEFINE_ERROR(OutOfRange)
LDNN_DEFINE_ERROR(Unimplemented)
LDNN_DEFINE_ERROR(Internal)
LDNN_DEFINE_ERROR(Unavailable)
LDNN_DEFINE_ERROR(DataLoss)
LDNN_DEFINE_ERROR(Unauthenticated)
#undef LDNN_DEFINE_ERROR

}  // namespace lambdadnn
