// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/job_table.h"

#include <algorithm>

#include "common/json/dump_json.h"
#include "operator/api/job_summary.h"
#include "operator/cli/plan/yaml_text.h"
#include "operator/cli/run/run_view.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

constexpr size_t kGap = 3;

const Json& Child(const Json& object, const char* name) {
  static const Json kNothing = Json::object();
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNothing;
}

int64_t WholeOr(const Json& object, const char* name, int64_t fallback) {
  const Json& value = Child(object, name);
  return value.is_number_integer() ? value.get<int64_t>() : fallback;
}

// A field that a newer or older operator did not write is empty, as in kubectl's tables.
std::string OrNone(const std::string& text) { return text.empty() ? "<none>" : text; }

// As kubectl shows objects: without managedFields.
Json WithoutManagedFields(const Json& object) {
  Json shown = object;
  if (shown.is_object() && shown.contains("metadata") && shown["metadata"].is_object()) {
    shown["metadata"].erase("managedFields");
  }
  return shown;
}

std::string LastSeen(const Json& event) {
  const std::string series = TextField(Child(event, "series"), "lastObservedTime");
  if (!series.empty()) return series;
  const std::string time = TextField(event, "eventTime");
  return time.empty() ? MetadataText(event, "creationTimestamp") : time;
}

}  // namespace

std::string FormatTable(const std::vector<TableRow>& rows, std::vector<size_t>* widths) {
  std::vector<size_t> own;
  if (widths == nullptr) widths = &own;
  for (const TableRow& row : rows) {
    if (widths->size() < row.size()) widths->resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      (*widths)[i] = std::max((*widths)[i], DisplayWidth(row[i]));
    }
  }
  std::string text;
  for (const TableRow& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append((*widths)[i] - DisplayWidth(row[i]) + kGap, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

TableRow JobTableHeader(const JobTableOptions& options) {
  TableRow row;
  if (options.with_namespace) row.push_back("NAMESPACE");
  for (const char* name :
       {"NAME", "STATE", "FUNCTIONS", "MEMORY", "EPOCH", "LOSS", "ETA", "COST", "AGE"}) {
    row.push_back(name);
  }
  if (options.wide) row.insert(row.end(), {"REASON", "PLAN", "RESTARTS"});
  return row;
}

TableRow JobTableEntry(const Json& object, const JobTableOptions& options, WallTime now) {
  const Json& status = Child(object, "status");
  const Json& summary = Child(status, "summary");
  TableRow row;
  if (options.with_namespace) row.push_back(MetadataText(object, "namespace"));
  row.push_back(MetadataText(object, "name"));
  row.push_back(OrNone(IsBeingDeleted(object) ? "Terminating" : TextField(status, "phase")));
  for (const char* field : {"functions", "memory", "epoch", "loss", "eta", "cost"}) {
    row.push_back(TextField(summary, field));
  }
  row.push_back(AgeSince(MetadataText(object, "creationTimestamp"), now));
  if (options.wide) {
    row.push_back(TextField(summary, "reason"));
    row.push_back(TextField(summary, "plan"));
    row.push_back(std::to_string(WholeOr(Child(status, "usage"), "restarts", 0)));
  }
  return row;
}

std::string FormatEvents(std::vector<Json> events, const EventTableOptions& options, WallTime now) {
  std::stable_sort(events.begin(), events.end(),
                   [](const Json& a, const Json& b) { return LastSeen(a) < LastSeen(b); });
  TableRow header;
  if (options.with_namespace) header.push_back("NAMESPACE");
  header.push_back("LAST SEEN");
  if (options.with_job) header.push_back("JOB");
  header.insert(header.end(), {"TYPE", "REASON", "COUNT"});
  if (options.wide) header.insert(header.end(), {"FROM", "NAME"});
  header.push_back("MESSAGE");
  std::vector<TableRow> rows = {header};
  for (const Json& event : events) {
    TableRow row;
    if (options.with_namespace) row.push_back(MetadataText(event, "namespace"));
    row.push_back(AgeSince(LastSeen(event), now));
    if (options.with_job) row.push_back(TextField(Child(event, "regarding"), "name"));
    row.push_back(TextField(event, "type"));
    row.push_back(TextField(event, "reason"));
    row.push_back(std::to_string(WholeOr(Child(event, "series"), "count", 1)));
    if (options.wide) {
      row.push_back(TextField(event, "reportingController"));
      row.push_back(MetadataText(event, "name"));
    }
    row.push_back(TextField(event, "note"));
    rows.push_back(std::move(row));
  }
  return FormatTable(rows);
}

std::string ResourceName(const Json& object) {
  const bool event = TextField(object, "kind") == "Event";
  return (event ? "event.events.k8s.io/" : "serverlesstrainingjob.lambdadnn.io/") +
         MetadataText(object, "name");
}

std::string FormatObject(const Json& object, const std::string& format) {
  if (format == "name") return ResourceName(object) + "\n";
  const Json shown = WithoutManagedFields(object);
  return format == "yaml" ? FormatYaml(shown) : DumpJson(shown, 2) + "\n";
}

std::string FormatObjects(const std::vector<Json>& objects, const std::string& format) {
  if (format == "name") {
    std::string text;
    for (const Json& object : objects) text += ResourceName(object) + "\n";
    return text;
  }
  Json items = Json::array();
  for (const Json& object : objects) items.push_back(WithoutManagedFields(object));
  return FormatObject({{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}},
                      format);
}

std::string AgeSince(const std::string& time, WallTime now) {
  WallTime then;
  if (!ParseRfc3339(time, &then)) return "<unknown>";
  return FormatShortDuration(std::max(0.0, ToSeconds(now - then)));
}

}  // namespace lambdadnn
