// SPDX-License-Identifier: Apache-2.0
// The CRD of ServerlessTrainingJob, parsed and compiled once: constants of this program.
#pragma once

#include "common/json/structural_schema.h"

namespace lambdadnn {

// The CustomResourceDefinition as JSON.
const Json& JobCrd();
// Its openAPIV3Schema; paths begin at the object ("spec.model").
const StructuralSchema& JobSchema();
// The schema of a field such as "spec.training.epochs" or "spec.aggregation.layers[0]"; nullptr
// when there is none.
const StructuralSchema* FindFieldSchema(std::string_view path);

}  // namespace lambdadnn
