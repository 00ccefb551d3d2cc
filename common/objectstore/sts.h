// SPDX-License-Identifier: Apache-2.0
// Client of a Security Token Service: temporary credentials with fewer rights than the caller's, by
// AssumeRole (version 2011-06-15). MinIO and Ceph serve it at the root of the S3 endpoint, AWS at a
// host of the region. The new credentials may do what both the session policy and their parent
// allow. The parent is the role that the caller's credentials name (role_arn; AWS and Ceph require
// one), else the caller.
//
// Errors: kUnimplemented = no such service, or AWS without a role; kPermissionDenied = not for
// these credentials (MinIO: those of a service account, or temporary ones), or unknown credentials;
// kInvalidArgument = policy, duration or role refused; kUnavailable = retry. Messages quote the
// server and contain no secrets.
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
