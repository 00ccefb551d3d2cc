// SPDX-License-Identifier: Apache-2.0
// What an inspection found as one page of HTML: no network, no script, light and dark. Classes with
// their shares, numbers, warnings, and of images a grid of pictures by class.
#pragma once

#include <string>
#include <string_view>

#include "trainer_function/data/inspection.h"

namespace lambdadnn {

// `uri` is the data set's, as its title. Pure.
std::string RenderInspection(const DatasetInspection& inspection, std::string_view uri);

}  // namespace lambdadnn
