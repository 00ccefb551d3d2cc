// SPDX-License-Identifier: Apache-2.0
// Is a ServerlessTrainingJob a good one? Three layers, all from the CRD: its schema
// (job_schema.h), its rules between fields (x-kubernetes-validations: CEL on a real server, written
// out here for the in-memory one and for files; a test holds the sentences in step), and what the
// decoder wants beyond them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/json/json_reader.h"

namespace lambdadnn {

// One x-kubernetes-validations entry of the CRD.
struct JobRule {
  const char* path;     // of the object that holds the rule ("spec.training")
  const char* field;    // its fieldPath without the dot; empty = the object itself
  const char* message;  // the CRD's, word for word
  // `self` is the value at `path`; `old` the one before an update, or null.
  bool (*holds)(const Json& self, const Json* old);
};

std::span<const JobRule> JobRules();

// Appends the rules that `object` breaks; with `old`, those about changes too. Values of a wrong
// type break no rule here: the schema reports them. Defaults must have been applied.
void CheckJobRules(const Json& object, const Json* old, std::vector<FieldError>* errors);

// Everything that is wrong with an object that somebody wrote; empty = accept it.
std::vector<FieldError> ValidateJob(const Json& object);

}  // namespace lambdadnn
