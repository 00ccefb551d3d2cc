// SPDX-License-Identifier: Apache-2.0
// The id of a job: the last folder of its prefix in the object store. The operator writes it into
// an annotation, which backups keep: a restored object has another uid, but finds the checkpoints
// and results of the lost one. It begins with the job's name, so that a copy of the object under
// another name has a place of its own.
#pragma once

#include <string>
#include <string_view>

#include "operator/api/job.h"

namespace lambdadnn {

inline constexpr const char* kJobIdAnnotation = "lambdadnn.io/job-id";

// Of a job that brings none: "NAME-" and twelve characters of its uid.
std::string OwnJobId(const ObjectMeta& metadata);
// Whether a job of this name may have the id: "NAME-", then 1 to 36 of a-z and 0-9. So no id leads
// out of its folder.
bool IsJobIdOf(std::string_view id, std::string_view name);
// What status remembers, else what the annotation says, else its own. What may not be its id does
// not count.
std::string JobIdOf(const Job& job);
// The annotation's value; "" = there is none.
std::string AnnotatedJobId(const Job& job);

// Whether status is of an object of the same name before this one, whose uid it has: it was
// restored from a backup.
bool HasStatusOfEarlierObject(const Job& job);
// Takes such a status away, but for the id. It is as old as the backup; what holds is what the
// store says. The status of a job that has ended stays. Returns whether it was taken away.
bool ForgetEarlierObject(Job* job);

}  // namespace lambdadnn
