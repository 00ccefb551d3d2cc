// SPDX-License-Identifier: Apache-2.0
// By what the operator and the functions of one job authenticate to each other: a core/v1 Secret of
// the job's namespace, owned by the job. It is written once, and what it holds decides how the
// job's functions are reached, whatever another operator would have written. Pure builders.
#pragma once

#include <optional>
#include <string>

#include "common/base/random.h"
#include "common/base/tls_identity.h"
#include "common/json/json_reader.h"
#include "operator/api/job.h"

namespace lambdadnn {

struct JobKey {
  std::string key;  // what functions want to see; empty = not read yet
  // What functions show. None = they speak plain HTTP, as those of earlier operators do.
  std::optional<TlsIdentity> tls = {};
  friend bool operator==(const JobKey&, const JobKey&) = default;
};

std::string JobKeySecretName(const Job& job);
// 256 random bits as hexadecimal text.
std::string MakeJobKey(Random& random);
Json JobKeySecret(const Job& job, const JobKey& key);
// The key in a Secret of this job; nullopt when it is another job's or not a key. A certificate is
// not looked into.
std::optional<JobKey> KeyOfSecret(const Job& job, const Json& secret);

}  // namespace lambdadnn
