// SPDX-License-Identifier: Apache-2.0
#include "operator/api/job_id.h"

#include <algorithm>
#include <utility>

#include "operator/api/conditions.h"

namespace lambdadnn {
namespace {

// 48 bits of a random uid.
constexpr size_t kOwnCharacters = 12;
// Room for a whole uid without its dashes.
constexpr size_t kMaxCharacters = 36;

bool IsPlain(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

std::string OwnJobId(const ObjectMeta& metadata) {
  std::string id = metadata.name + "-";
  const size_t most = id.size() + kOwnCharacters;
  for (const char c : metadata.uid) {
    if (IsPlain(c) && id.size() < most) id += c;
  }
  return id;
}

bool IsJobIdOf(std::string_view id, std::string_view name) {
  if (name.empty() || !id.starts_with(name)) return false;
  id.remove_prefix(name.size());
  if (!id.starts_with('-')) return false;
  id.remove_prefix(1);
  return !id.empty() && id.size() <= kMaxCharacters && std::all_of(id.begin(), id.end(), IsPlain);
}

std::string AnnotatedJobId(const Job& job) {
  const auto found = job.metadata.annotations.find(kJobIdAnnotation);
  return found == job.metadata.annotations.end() ? "" : found->second;
}

std::string JobIdOf(const Job& job) {
  const std::string& name = job.metadata.name;
  if (IsJobIdOf(job.status.execution.job_id, name)) return job.status.execution.job_id;
  std::string annotated = AnnotatedJobId(job);
  return IsJobIdOf(annotated, name) ? std::move(annotated) : OwnJobId(job.metadata);
}

bool HasStatusOfEarlierObject(const Job& job) {
  const std::string& uid = job.status.execution.job_uid;
  return !uid.empty() && uid != job.metadata.uid;
}

bool ForgetEarlierObject(Job* job) {
  if (!HasStatusOfEarlierObject(*job) || IsFinished(*job)) return false;
  std::string id = std::move(job->status.execution.job_id);
  job->status = {};
  job->status.execution.job_id = std::move(id);
  return true;
}

}  // namespace lambdadnn
