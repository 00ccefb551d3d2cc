// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/campaign.h"

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/telemetry/log.h"
#include "tests/simulation/job_definition.h"
#include "tests/simulation/world.h"

namespace lambdadnn::simulation {
namespace {

void WriteAll(int file, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count <= 0) _exit(3);
    done += static_cast<size_t>(count);
  }
}

// Of CPU time, so that a busy machine makes no world hang. SIGPROF ends the process.
void LimitCpu(unsigned seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  LDNN_CHECK(setitimer(ITIMER_PROF, &timer, nullptr) == 0, "no timer");
}

// Lines: "begin N", "ok N faults slices incarnations revisions counted", "fail N invariant
// message", ledger lines.
void RunChild(int out, uint64_t first, uint64_t last, unsigned hang_seconds) {
  SetLogLevel(LogLevel::kError);
  FaultLedger ledger;
  for (uint64_t seed = first; seed <= last; ++seed) {
    LimitCpu(hang_seconds);
    WriteAll(out, "begin\t" + std::to_string(seed) + "\n");
    const WorldResult result = RunWorld(seed, {});
    ledger.Merge(result.faults);
    if (result.ok()) {
      WriteAll(out, "ok\t" + std::to_string(seed) + "\t" +
                        std::to_string(result.faults.TotalFaults()) + "\t" +
                        std::to_string(result.slices) + "\t" + std::to_string(result.incarnations) +
                        "\t" + std::to_string(result.plan_revisions) + "\t" +
                        std::to_string(result.counted_iterations) + "\n");
    } else {
      std::string message = result.violation->what + " [" + result.scenario + "]";
      std::replace(message.begin(), message.end(), '\n', ' ');
      std::replace(message.begin(), message.end(), '\t', ' ');
      WriteAll(out, "fail\t" + std::to_string(seed) + "\t" + NameOf(result.violation->invariant) +
                        "\t" + message + "\n");
    }
  }
  WriteAll(out, ledger.Serialize());
}

class Child {
 public:
  Child(uint64_t first, uint64_t last, unsigned hang_seconds) {
    int ends[2];
    LDNN_CHECK(pipe(ends) == 0, "no pipe");
    std::fflush(nullptr);
    pid_ = fork();
    LDNN_CHECK(pid_ >= 0, "cannot fork");
    if (pid_ == 0) {
      close(ends[0]);
      RunChild(ends[1], first, last, hang_seconds);
      _exit(0);
    }
    close(ends[1]);
    input_ = fdopen(ends[0], "r");
  }
  ~Child() {
    if (input_ != nullptr) std::fclose(input_);
    if (pid_ > 0) (void)Wait();
  }
  std::optional<std::string> ReadLine() {
    char* line = nullptr;
    size_t capacity = 0;
    const ssize_t length = getline(&line, &capacity, input_);
    std::optional<std::string> text;
    if (length > 0) text = std::string(line, static_cast<size_t>(length) - 1);
    free(line);
    return text;
  }
  // How it ended when it did not end well.
  std::string Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    if (WIFSIGNALED(status)) {
      return WTERMSIG(status) == SIGPROF
                 ? "the world hangs"
                 : std::string("the world crashed: ") + strsignal(WTERMSIG(status));
    }
    return WEXITSTATUS(status) == 0 ? "" : "exit code " + std::to_string(WEXITSTATUS(status));
  }

 private:
  pid_t pid_ = 0;
  FILE* input_ = nullptr;
};

// Runs [first, last] in one child; returns the last seed that it dealt with.
uint64_t RunBatch(uint64_t first, uint64_t last, unsigned hang_seconds, CampaignResult* result) {
  Child child(first, last, hang_seconds);
  uint64_t running = first;
  bool in_world = false;
  while (const auto line = child.ReadLine()) {
    const std::vector<std::string> parts = Split(*line, '\t');
    if (parts[0] == "begin") {
      running = static_cast<uint64_t>(*ParseInteger(parts[1]));
      in_world = true;
      continue;
    }
    if (result->faults.MergeLine(*line)) continue;
    in_world = false;
    ++result->seeds;
    if (parts[0] == "fail") {
      const auto invariant = InvariantOf(parts[2]);
      LDNN_CHECK(invariant.has_value(), "no invariant: " + parts[2]);
      result->failures.push_back({running, *invariant, parts[3]});
      continue;
    }
    result->faults_per_seed.push_back(*ParseInteger(parts[2]));
    result->slices_per_seed.push_back(*ParseInteger(parts[3]));
    result->incarnations_per_seed.push_back(*ParseInteger(parts[4]));
    result->revisions_per_seed.push_back(*ParseInteger(parts[5]));
    result->counted_iterations_per_seed.push_back(*ParseInteger(parts[6]));
  }
  const std::string end = child.Wait();
  if (!end.empty() || in_world) {
    ++result->seeds;
    result->failures.push_back({running, Invariant::kRuns, end});
  }
  return running;
}

}  // namespace

double CampaignResult::SeedsPerMinute() const {
  return seconds > 0 ? static_cast<double>(seeds) / seconds * 60 : 0;
}

int64_t Median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

CampaignResult RunCampaign(const CampaignOptions& options) {
  CampaignResult result;
  // Parsed once, here, for all children.
  (void)SharedJobDefinition();
  SystemClock clock;
  const Instant begin = clock.Now();
  uint64_t seed = options.first_seed;
  while (seed <= options.last_seed) {
    const uint64_t last =
        std::min(options.last_seed, seed + static_cast<uint64_t>(options.seeds_per_child) - 1);
    seed = RunBatch(seed, last, options.hang_seconds, &result) + 1;
    result.next_seed = seed;
    result.seconds = ToSeconds(clock.Now() - begin);
    if (options.enough && options.enough(result)) break;
    if (options.limit_seconds > 0 && result.seconds >= options.limit_seconds) break;
  }
  return result;
}

}  // namespace lambdadnn::simulation
