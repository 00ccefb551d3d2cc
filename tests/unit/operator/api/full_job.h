// SPDX-License-Identifier: Apache-2.0
// A job in which every field is set to something else than its default. It breaks the rules between
// fields (it sets both sides of every union) but not the schema.
#pragma once

#include "operator/api/job.h"

namespace lambdadnn {

Job FullJob();

}  // namespace lambdadnn
