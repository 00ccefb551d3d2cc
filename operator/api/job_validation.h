// SPDX-License-Identifier: Apache-2.0
// Validation of a ServerlessTrainingJob in three layers: the CRD's schema (job_schema.h), its rules
// between fields (x-kubernetes-validations: CEL on a real server, C++ here for the in-memory server
// and for files; a test holds rules and messages in step), and the decoder's own checks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/json/json_reader.h"

namespace lambdadnn {

// One x-kubernetes-validations entry of the CRD.
struct JobRule {
  const char* path;     // of the object that holds the rule ("spec.training", "a.list[]")
  const char* field;    // its fieldPath without the dot; empty = the object itself
  const char* message;  // the CRD's, word for word
  // `self` is the value at `path`; `old` the one before an update, or null.
  bool (*holds)(const Json& self, const Json* old);
};

std::span<const JobRule> JobRules();

// Appends the rules that `object` breaks; with `old`, those about changes too. Values of a wrong
// type break no rule here: the schema reports them. Defaults must have been applied.
void CheckJobRules(const Json& object, const Json* old, std::vector<FieldError>* errors);

// All problems of an object that a user wrote; empty = valid.
std::vector<FieldError> ValidateJob(const Json& object);

}  // namespace lambdadnn
