// SPDX-License-Identifier: Apache-2.0
// The view of a run for its user: the job's status and the state of every function, as plain
// values, and functions that print them. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "operator/api/job.h"

namespace lambdadnn {

struct FunctionView {
  std::string name;    // "worker-0" once it has a role, else its group
  std::string state;   // Starting, Ready, Running, Gone
  std::string detail;  // why it is gone
};

struct RunView {
  std::string name;
  JobStatus status;
  std::map<std::string, FunctionView> functions;  // by uid
  std::string last_event;
  double seconds = 0;  // since the run began
};

// Folds one event of the controller (events.jsonl) into the functions' states.
void ApplyEvent(const Json& event, RunView* view);

// The live display: at most `rows` lines, none wider than `columns` (>= 1 each).
std::vector<std::string> RenderLive(const RunView& view, int columns, int rows);

// One line for a log: "epoch 2/3, iteration 120/563, loss 0.1234, ...".
std::string RenderProgressLine(const RunView& view);
// One line for an event worth a line of its own in plain output; empty for the others.
std::string RenderEventLine(const Json& event);

// Columns that a UTF-8 text takes on a terminal (code points; ours has no wide ones).
size_t DisplayWidth(const std::string& text);

}  // namespace lambdadnn
