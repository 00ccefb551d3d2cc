// SPDX-License-Identifier: Apache-2.0
// Temporary credentials for a part of what one's own may do, from a Security Token Service (action
// AssumeRole of version 2011-06-15): that of an S3 server is at the root of the same endpoint, as
// MinIO and Ceph have it, AWS's is a server of the region. What they may do is what both the policy
// and their parent allow: the role that one's own credentials name (role_arn; AWS and Ceph want
// one), else these themselves.
//
// Errors: kUnimplemented = the server has no such service, or AWS and no role; kPermissionDenied =
// it has, and not for these credentials (MinIO: those of a service account, or temporary
// themselves), or does not know them; kInvalidArgument = it refuses policy, duration or role;
// kUnavailable = ask again. Messages quote the server and hold nothing secret.
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
