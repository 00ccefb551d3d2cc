// SPDX-License-Identifier: Apache-2.0
// One reading of each job for all that decide by it: a version of its object is decoded and
// validated once, whoever asks first.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "operator/api/status_codec.h"
#include "operator/kube/object_cache.h"

namespace lambdadnn {

struct JobReading {
  ObjectVersion version;
  // Without the status of an earlier object (ForgetEarlierObject).
  Job job;
  // Why what the user wrote cannot be used as it is, beside `newer`; OK = it can.
  Status problem;
  // Fields of its spec that this version does not know, of the newer CRD that let them in; OK =
  // none.
  Status newer;
  // Why the job is left alone: these, or what of status this version cannot go on from; OK =
  // neither.
  Status unreadable;
  // What of status is taken as not written.
  std::vector<FieldError> passed_over;
  // Whatever the values of its spec are; false for a job of an earlier API too, and true for one
  // of a newer one.
  bool spec_read = false;
  bool whole = false;  // nothing of it had any problem
  Status invalid;      // what validation says of the spec of this generation
};

// `before`: an older reading, of which the spec of the same generation is taken over; or null.
JobReading ReadJob(const Json& object, const JobReading* before = nullptr);

// Thread-safe. Objects are read outside of the lock.
class JobReadings {
 public:
  // Outlives this.
  explicit JobReadings(const ObjectCache& cache) : cache_(cache) {}

  enum class Detail {
    kWhole,
    // Of a job that has finished only its version, its times of creation and start, and how it
    // ended, for which nothing is decoded.
    kOutlineOfFinished,
  };
  // Of the newest version; null = the object is gone. Of a job that has finished nothing is kept
  // here: most jobs of a cluster are such.
  std::shared_ptr<const JobReading> Get(const ObjectName& name, Detail detail = Detail::kWhole);
  // Readings that are kept, and how many objects were decoded so far.
  size_t kept() const;
  size_t decoded() const;

 private:
  std::shared_ptr<const JobReading> Find(const ObjectName& name,
                                         const ObjectVersion& version) const;
  std::shared_ptr<const JobReading> Read(const ObjectName& name, const Json& object);

  const ObjectCache& cache_;
  mutable std::mutex mutex_;
  std::map<ObjectName, std::shared_ptr<const JobReading>> readings_;
  size_t decoded_ = 0;
};

}  // namespace lambdadnn
