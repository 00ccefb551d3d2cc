// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/filesystem_errors.h"

#include <cerrno>
#include <system_error>

namespace lambdadnn {

Status ErrnoStatus(const std::string& doing, int error) {
  const std::string message = doing + ": " + std::generic_category().message(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return NotFoundError(message);
    case EACCES:
    case EPERM:
      return PermissionDeniedError(message + "; give this user the right to read and write there");
    case EROFS:
      return PermissionDeniedError(message + "; choose a folder that can be written");
    case ENOSPC:
    case EDQUOT:
      return ResourceExhaustedError(message + "; free some space and try again");
    case EMFILE:
    case ENFILE:
      return ResourceExhaustedError(message + "; raise the limit of open files (ulimit -n)");
    case ENAMETOOLONG:
      return InvalidArgumentError(message + "; choose a store folder with a shorter path");
    default:
      return UnavailableError(message);
  }
}

}  // namespace lambdadnn
