// SPDX-License-Identifier: Apache-2.0
// Temporary credentials for a part of what one's own may do, from an S3 server's Security Token
// Service (action AssumeRole of version 2011-06-15, at the root of the same endpoint, as MinIO has
// it). What they may do is what both their parent and the policy allow.
//
// Errors: kUnimplemented = the server has no such service; kPermissionDenied = it has, and not for
// these credentials (MinIO: those of a service account, or temporary themselves), or does not know
// them; kInvalidArgument = it refuses policy or duration; kUnavailable = ask again. Messages quote
// the server and hold nothing secret.
#pragma once

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/http/http_transport.h"
#include "common/objectstore/assumed_role.h"
#include "common/objectstore/s3_client.h"

namespace lambdadnn {

// Asks once; again at once when only this machine's clock was wrong.
Result<TemporaryCredentials> AssumeRole(HttpTransport& transport, Clock& clock,
                                        const S3Options& options, const AssumedRole& role);

}  // namespace lambdadnn
