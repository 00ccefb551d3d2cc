// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/run_output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "common/json/dump_json.h"
#include "operator/api/job_codec.h"

namespace lambdadnn {
namespace {

// Between two progress lines without a terminal.
constexpr double kLineSeconds = 5;

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

// Asked at every drawing, so that a resized window needs no signal handler.
TerminalSize SizeOfTerminal() {
  winsize size{};
  TerminalSize result;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    result.columns = size.ws_col;
    if (size.ws_row > 0) result.rows = size.ws_row;
  }
  return result;
}

}  // namespace

RunOutputMode ChooseMode(const std::string& format) {
  if (format == "json") return RunOutputMode::kJson;
  return isatty(STDOUT_FILENO) == 1 ? RunOutputMode::kLive : RunOutputMode::kLines;
}

RunOutput::RunOutput(Runtime& runtime, RunOutputMode mode, const std::string& directory,
                     std::FILE* out)
    : runtime_(runtime), mode_(mode), out_(out), begin_(runtime.clock.Now()) {
  if (!directory.empty()) events_ = std::fopen((directory + "/events.jsonl").c_str(), "ae");
}

RunOutput::~RunOutput() {
  if (events_ != nullptr) std::fclose(events_);
}

void RunOutput::PrintJson(const Json& json) {
  std::fprintf(out_, "%s\n", DumpJson(json).c_str());
  std::fflush(out_);
}

void RunOutput::OnEvent(const Json& event) {
  const std::lock_guard lock(mutex_);
  if (events_ != nullptr) {
    std::fprintf(events_, "%s\n", DumpJson(event).c_str());
    std::fflush(events_);
  }
  ApplyEvent(event, &view_);
  if (mode_ == RunOutputMode::kJson) {
    PrintJson(event);
    return;
  }
  const std::string line = RenderEventLine(event);
  if (line.empty()) return;
  if (mode_ == RunOutputMode::kLive) Erase();
  std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
  if (mode_ == RunOutputMode::kLive) Draw();
}

void RunOutput::Update(const Job& job) {
  const std::lock_guard lock(mutex_);
  view_.name = job.metadata.name;
  view_.status = job.status;
  const Instant now = runtime_.clock.Now();
  view_.seconds = ToSeconds(now - begin_);
  if (mode_ == RunOutputMode::kLive) {
    Erase();
    Draw();
    return;
  }
  const ProgressStatus& progress = job.status.progress;
  const bool news = progress.iteration != last_iteration_ && job.status.plan.has_value() &&
                    now - last_line_ >= FromSeconds(kLineSeconds);
  const bool new_phase = job.status.phase != last_phase_;
  last_phase_ = job.status.phase;
  if (mode_ == RunOutputMode::kJson) {
    if (news || new_phase) {
      PrintJson({{"type", "status"}, {"job", view_.name}, {"status", EncodeStatus(job.status)}});
    }
  } else if (news && job.status.phase == "Running") {
    std::fprintf(out_, "%s\n", RenderProgressLine(view_).c_str());
    std::fflush(out_);
  }
  if (news) {
    last_line_ = now;
    last_iteration_ = progress.iteration;
  }
}

void RunOutput::Say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (mode_ == RunOutputMode::kJson) {
    PrintJson({{"type", "note"}, {"message", line}});
    return;
  }
  if (mode_ == RunOutputMode::kLive) Erase();
  std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
}

void RunOutput::Erase() {
  if (drawn_.empty()) return;
  // A window that became narrower has wrapped what was drawn.
  const size_t columns = static_cast<size_t>(std::max(SizeOfTerminal().columns, 1));
  size_t rows = 0;
  for (const std::string& line : drawn_) {
    rows += std::max<size_t>(1, (DisplayWidth(line) + columns - 1) / columns);
  }
  std::fprintf(out_, "\x1b[%zuA\r\x1b[J", rows);
  drawn_.clear();
}

void RunOutput::Draw() {
  const TerminalSize size = SizeOfTerminal();
  // One column and row less than there is: no terminal wraps or scrolls then.
  drawn_ = RenderLive(view_, size.columns - 1, size.rows - 1);
  for (const std::string& line : drawn_) std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
}

void RunOutput::Finish() {
  const std::lock_guard lock(mutex_);
  drawn_.clear();
}

}  // namespace lambdadnn
