// SPDX-License-Identifier: Apache-2.0
// Job files (YAML or JSON) as the command line takes them, with diagnostics that point at a line:
// `FILE:LINE: spec.field.path: what is wrong; what to do`. Several problems are several lines,
// each after the first beginning with "error: ", like the first when a command prints it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/json/json_reader.h"
#include "operator/api/job.h"

namespace lambdadnn {

struct JobFile {
  Job job;
  // What to submit: as written, with overrides, and with paths resolved to file:// URIs.
  Json object;
};

// Reads `path` ("-" = standard input). Of several YAML documents exactly one must be a job.
// `overrides` are "spec.training.epochs=3", in order; the value is YAML, taken as text where the
// field is text; an empty value removes the field. URIs without a scheme are paths: relative to the
// job file's folder, in overrides to the current one. kInvalidArgument for bad content, kNotFound
// and the like when the file cannot be read.
Result<JobFile> LoadJobFile(const std::string& path, std::span<const std::string> overrides = {});

// The same for text that is already here; `name` stands in diagnostics, `folder` is absolute.
Result<JobFile> ParseJobFile(std::string_view text, const std::string& name,
                             const std::string& folder,
                             std::span<const std::string> overrides = {});

}  // namespace lambdadnn
