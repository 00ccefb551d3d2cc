// SPDX-License-Identifier: Apache-2.0
// Where a run's events go: events.jsonl; and standard output as a live display (terminal),
// plain lines (no terminal), or one JSON object a line (-o json). Thread-safe.
#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/runtime.h"
#include "operator/cli/run/run_view.h"
#include "operator/controller/dependencies.h"

namespace lambdadnn {

enum class RunOutputMode { kLive, kLines, kJson };

class RunOutput final : public ControllerObserver {
 public:
  // Appends to DIR/events.jsonl, unless DIR is empty; prints to `out`.
  RunOutput(Runtime& runtime, RunOutputMode mode, const std::string& directory,
            std::FILE* out = stdout);
  ~RunOutput() override;
  RunOutput(const RunOutput&) = delete;
  RunOutput& operator=(const RunOutput&) = delete;

  void OnEvent(const Json& event) override;
  // The newest status; redraws, or prints a line now and then.
  void Update(const Job& job);
  // A sentence of the command itself ("environment: ...").
  void Say(const std::string& line);
  // Leaves the live display as it is and goes below it.
  void Finish();

 private:
  void Draw();   // holds mutex_
  void Erase();  // likewise
  void PrintJson(const Json& json);

  Runtime& runtime_;
  const RunOutputMode mode_;
  std::FILE* const out_;
  const Instant begin_;
  std::mutex mutex_;
  std::FILE* events_ = nullptr;
  RunView view_;
  std::vector<std::string> drawn_;
  Instant last_line_{};
  int64_t last_iteration_ = -1;
  std::string last_phase_;
};

// The mode for `-o FORMAT` and this standard output.
RunOutputMode ChooseMode(const std::string& format);

}  // namespace lambdadnn
