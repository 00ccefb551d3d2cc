// SPDX-License-Identifier: Apache-2.0
// The key with which the operator and the functions of one job authenticate to each other: a
// core/v1 Secret of the job's namespace, owned by the job. Pure builders.
#pragma once

#include <optional>
#include <string>

#include "common/base/random.h"
#include "common/json/json_reader.h"
#include "operator/api/job.h"

namespace lambdadnn {

std::string JobKeySecretName(const Job& job);
// 256 random bits as hexadecimal text.
std::string MakeJobKey(Random& random);
Json JobKeySecret(const Job& job, const std::string& key);
// The key in a Secret of this job; nullopt when it is another job's or not a key.
std::optional<std::string> KeyOfSecret(const Job& job, const Json& secret);

}  // namespace lambdadnn
