// SPDX-License-Identifier: Apache-2.0
// The report of one run as a single HTML page: no network, no script, light and dark. Also its
// short text form. Both read report.json (docs/formats.md) and tolerate fields that are not there:
// a run that failed early still has a page that says so.
#pragma once

#include <string>

#include "common/json/json_reader.h"

namespace lambdadnn {

std::string RenderReportHtml(const Json& report);

// The predicted/actual table, accuracy, requests and what binds; at most 80 columns.
std::string RenderReportText(const Json& report);

}  // namespace lambdadnn
