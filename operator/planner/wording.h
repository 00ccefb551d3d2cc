// SPDX-License-Identifier: Apache-2.0
// The planner's results as sentences, for the controller's conditions and `lambdadnn plan`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/planner/planner.h"

namespace lambdadnn {

// "memory", "parameterServerBandwidth", ...: status.plan.binding.
std::string_view LimitName(Limit limit);
std::vector<std::string> NamesOf(const std::vector<Limit>& limits);
// What it means for a plan, or for the fastest or cheapest of a certificate.
std::string_view MeaningOf(Limit limit, bool feasible);

// One sentence: why there is no plan, and what to change.
std::string ReasonOf(const InfeasibilityCertificate& certificate);

// What cheapest means where nothing has a price, and what to tell; "" where prices tell it.
std::string_view CheapestMeans(CostMeasure measure);
// "Prices", "CoreSeconds", "GibSeconds".
std::string_view CostMeasureName(CostMeasure measure);

// "SpaceCovered", "BoundReached", "Heuristic".
std::string_view SearchEndName(SearchEnd end);

}  // namespace lambdadnn
