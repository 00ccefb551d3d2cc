// SPDX-License-Identifier: Apache-2.0
// Jobs and events as commands print them: tables like kubectl's, names, JSON and YAML. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

using TableRow = std::vector<std::string>;

// Columns as wide as their longest text (or as `widths` says, which it raises), three spaces
// between them, no spaces at a line's end.
std::string FormatTable(const std::vector<TableRow>& rows, std::vector<size_t>* widths = nullptr);

struct JobTableOptions {
  bool with_namespace = false;
  bool wide = false;
};
TableRow JobTableHeader(const JobTableOptions& options);
// From the object as the API server gave it.
TableRow JobTableEntry(const Json& object, const JobTableOptions& options, WallTime now);

struct EventTableOptions {
  bool with_namespace = false;
  bool with_job = false;
  bool wide = false;  // also who told it, and the event's name
};
// LAST SEEN, TYPE, REASON, COUNT, MESSAGE of events.k8s.io events, the oldest first.
std::string FormatEvents(std::vector<Json> events, const EventTableOptions& options, WallTime now);

// "serverlesstrainingjob.lambdadnn.io/digits"; of an event "event.events.k8s.io/digits.17f3".
std::string ResourceName(const Json& object);

// One object for `-o json|yaml|name`, with the newline at its end.
std::string FormatObject(const Json& object, const std::string& format);
// A List of them (json, yaml), or a name a line.
std::string FormatObjects(const std::vector<Json>& objects, const std::string& format);

// "3m12s" since `time` (RFC 3339); "<unknown>" when it is not one.
std::string AgeSince(const std::string& time, WallTime now);

}  // namespace lambdadnn
