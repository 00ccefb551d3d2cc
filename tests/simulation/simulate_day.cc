// SPDX-License-Identifier: Apache-2.0
// simulate_day: jobs that come and go for a virtual day through one production controller, and a
// count of everything that could be left behind after each of its hours. The controller, its
// informer, work queue, admission queue and event recorder are the real ones, on the simulator's
// fibers; functions are tests/support's, which train in virtual time; so a day takes a minute or
// two. In the last quarter of every hour nothing is created: at its end the world must be as empty
// as at the end of the hour before.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <set>

#include "common/base/process_usage.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "common/objectstore/memory_object_store.h"
#include "common/objectstore/metered_object_store.h"
#include "common/telemetry/log.h"
#include "operator/controller/loop/controller.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/in_memory_api_server.h"
#include "operator/kube/object_metadata.h"
#include "tests/simulation/sim_scheduler.h"
#include "tests/support/fake_functions.h"
#include "tests/support/job_world.h"

namespace lambdadnn::simulation {
namespace {

constexpr double kHour = 3600;
constexpr double kBusySeconds = 2700;  // of every hour
// What the process may grow after the second hour: the allocator's habits, and the memories that
// have a limit of their own (history of watches, deletions, event series).
constexpr double kSlackMib = 24;

// How each job ended.
class Endings final : public ControllerObserver {
 public:
  struct Ending {
    bool complete = false;
    std::string reason;
    int times = 1;
  };

  void OnEvent(const Json& event) override {
    if (event.value("type", "") != "event" || event.value("status", "") != "True") return;
    const std::string condition = event.value("condition", "");
    if (condition != "Complete" && condition != "Failed") return;
    const auto [ending, is_first] =
        of_.emplace(event.at("job"), Ending{condition == "Complete", event.value("reason", "")});
    if (!is_first) ++ending->second.times;
  }
  // Null: it did not.
  const Ending* Of(const std::string& job) const {
    const auto found = of_.find(job);
    return found == of_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Ending> of_;
};

// Counts the tasks that have not ended.
class CountingExecutor final : public Executor {
 public:
  explicit CountingExecutor(Executor& executor) : executor_(executor) {}
  [[nodiscard]] std::unique_ptr<Task> Spawn(std::string name, std::function<void()> body) override {
    ++running_;
    return executor_.Spawn(std::move(name), [this, body = std::move(body)] {
      body();
      --running_;
    });
  }
  std::unique_ptr<Monitor> NewMonitor() override { return executor_.NewMonitor(); }
  int64_t running() const { return running_; }

 private:
  Executor& executor_;
  int64_t running_ = 0;
};

using Counts = std::map<std::string, int64_t>;

class Day {
 public:
  Day(uint64_t seed, double hours)
      : hours_(hours),
        scheduler_(seed),
        process_(scheduler_.NewProcess("operator")),
        executor_(process_.runtime().executor),
        runtime_{process_.runtime().clock, executor_, process_.runtime().random},
        server_(runtime_, {.history_limit = 500}),
        functions_(runtime_.clock, store_, {.iteration_seconds = 0.5}) {
    server_.Define(JobDefinition());
    ResourceDefinition secrets;
    secrets.type = SecretType();
    server_.Define(secrets);
    server_.Define(EventDefinition());
    functions_.set_capacity_mib(kCapacityMib);
    options_.platform.memory = {256, 1024, 64};
    options_.platform.milli_cpu_per_gib = 1000;
    options_.platform.total_milli_cpu = 4000;
    options_.platform.total_memory_mib = kCapacityMib;
    options_.platform.store_bytes_per_second = 1e9;
    options_.platform.store_request_seconds = 0.001;
    options_.platform.function_store_intercept = 1e9;
    options_.platform.function_network_bytes_per_second = 1e9;
    options_.platform.parameter_server_network_bytes_per_second = 1e9;
    options_.platform.prices.gib_second = 1.66667e-5;
  }

  // 0 = nothing grew.
  int Run() {
    (void)process_.Spawn("day", [this] { Live(); });
    RunLimits limits;
    limits.virtual_time = FromSeconds(hours_ * kHour + kHour);
    limits.events = 2'000'000'000;
    const Status ran = scheduler_.Run([this] { return over_; }, limits);
    if (!ran.ok()) problems_.push_back(ran.ToString());
    int complete = 0;
    int failed = 0;
    int unfinished = 0;
    for (int i = 0; i < created_; ++i) {
      const Endings::Ending* const ending = JudgeEnding("job-" + std::to_string(i));
      if (ending == nullptr) {
        ++unfinished;
      } else {
        ++(ending->complete ? complete : failed);
      }
    }
    if (failed > failures_given_) {
      problems_.push_back(std::to_string(failed) + " jobs failed, and " +
                          std::to_string(failures_given_) + " had a reason to");
    }
    // A day of which nothing can be said is no proof: most jobs train to their end.
    if (2 * complete < created_ || failed == 0 || unfinished == 0) {
      problems_.push_back("too few jobs of some kind");
    }
    for (const std::string& problem : problems_) std::printf("GREW %s\n", problem.c_str());
    std::printf("%d jobs came and went: %d complete, %d failed, %d deleted on the way; %s\n",
                created_, complete, failed, unfinished,
                problems_.empty() ? "nothing is left of them" : "see above");
    return problems_.empty() ? 0 : 1;
  }

 private:
  static constexpr int64_t kCapacityMib = 4096;

  // Who was not deleted ends, once, and fails for a reason that it was given here. Null: it did not
  // end.
  const Endings::Ending* JudgeEnding(const std::string& job) {
    const Endings::Ending* const ending = endings_.Of(job);
    if (ending == nullptr) {
      if (!deleted_.contains(job)) {
        problems_.push_back(job + " did not end, and was not deleted");
      }
      return nullptr;
    }
    if (ending->times > 1) {
      problems_.push_back(job + " ended " + std::to_string(ending->times) + " times");
    }
    const char* const given = nowhere_.contains(job) ? "ResumeFromUnusable" : "SliceFailed";
    if (!ending->complete && ending->reason != given) {
      problems_.push_back(job + " failed: " + ending->reason + ", and not: " + given);
    }
    return ending;
  }

  Random& random() { return runtime_.random; }
  double Now() { return ToSeconds(scheduler_.Now() - Instant{}); }

  void Live() {
    EventRecorder recorder(server_, runtime_, {});
    ControllerDependencies dependencies{
        .runtime = runtime_,
        .kube = server_,
        .backend = functions_,
        .slices = functions_,
        .open_store = [this](const StoreReference&,
                             const StoreSecrets&) -> Result<std::unique_ptr<ObjectStore>> {
          return std::unique_ptr<ObjectStore>(
              std::make_unique<MeteredObjectStore>(store_, runtime_.clock));
        },
        .observer = &endings_,
        .record_event = [&recorder](EventDraft draft) { recorder.Record(std::move(draft)); }};
    Controller controller(dependencies, options_);
    controller.Start();
    std::printf("%4s %6s %8s", "hour", "jobs", "RSS MiB");
    for (int hour = 1; hour <= static_cast<int>(hours_); ++hour) {
      while (Now() < (hour - 1) * kHour + kBusySeconds) {
        Create();
        Disturb();
        runtime_.clock.SleepFor(FromSeconds(60 + 360 * random().Uniform()));
      }
      for (const Json& job : Jobs()) EndFor(job);
      runtime_.clock.SleepFor(FromSeconds(hour * kHour - Now()));
      Judge(hour, controller);
    }
    controller.Stop();
    over_ = true;
  }

  std::vector<Json> Jobs() {
    const auto list = server_.List(ServerlessTrainingJobType(), "", "", 0, "");
    return list.ok() ? list->items : std::vector<Json>();
  }

  void Create() {
    const int burst = random().Uniform() < 0.15 ? 5 : 1;
    for (int i = 0; i < burst; ++i) {
      Json job = JobWorld::MinimalJob();
      job["metadata"]["name"] = "job-" + std::to_string(created_++);
      Json& spec = job["spec"];
      spec["training"]["epochs"] = 1 + static_cast<int>(random().Uniform() * 3);
      spec["ttlSecondsAfterFinished"] = static_cast<int>(random().Uniform() * 600);
      if (random().Uniform() < 0.3) spec.erase("profile");
      if (random().Uniform() < 0.3) {
        spec["objective"]["fixed"] = {{"functions", 1}, {"memory", "256Mi"}};
        spec["aggregation"] = {{"shards", 1}, {"layers", {1, 1}}};
      }
      if (random().Uniform() < 0.1) {
        spec["checkpoint"]["resumeFrom"] = "s3://bucket/nowhere";
        nowhere_.insert(job["metadata"]["name"]);
        ++failures_given_;
      }
      const auto made = server_.Create(ServerlessTrainingJobType(), job);
      LDNN_CHECK(made.ok(), made.status().ToString());
    }
  }

  void Delete(const Json& job) {
    if (server_.Delete(ServerlessTrainingJobType(), NameOf(job), "").ok()) {
      deleted_.insert(NameOf(job).name);
    }
  }

  void Patch(const Json& job, const Json& spec) {
    (void)server_.Patch(ServerlessTrainingJobType(), NameOf(job), {{"spec", spec}},
                        Subresource::kNone);
  }

  // What befalls jobs: deletion, suspension, another plan, lost functions, failures.
  void Disturb() {
    for (const Json& job : Jobs()) {
      const double dice = random().Uniform();
      if (dice < 0.05) {
        Delete(job);
      } else if (dice < 0.15) {
        Patch(job, {{"suspend", !job.at("spec").value("suspend", false)}});
      } else if (dice < 0.25) {
        Patch(job, {{"objective", {{"fixed", {{"functions", 2}, {"memory", "256Mi"}}}}}});
      }
    }
    const std::vector<std::string> live = functions_.Live();
    if (!live.empty() && random().Uniform() < 0.5) functions_.Kill(live.front());
    if (random().Uniform() < 0.1) {
      functions_.FailNext("worker-0", InvalidArgumentError("simulated"), true);
      ++failures_given_;
    }
  }

  // Whoever forgot a suspended job takes it away.
  void EndFor(const Json& job) {
    if (!job.at("spec").value("suspend", false)) return;
    Delete(job);
  }

  Counts Count(const Controller& controller) {
    Counts counts;
    const Controller::Counts of = controller.counts();
    counts["jobs in the cache"] = static_cast<int64_t>(of.cached);
    counts["jobs remembered"] = static_cast<int64_t>(of.remembered);
    counts["work queue"] = static_cast<int64_t>(of.queued);
    counts["admission queue"] = static_cast<int64_t>(of.admission);
    counts["failure counts"] = static_cast<int64_t>(of.failing);
    counts["tasks"] = executor_.running();
    counts["streams"] = static_cast<int64_t>(functions_.streams());
    counts["functions"] = static_cast<int64_t>(functions_.Live().size());
    const auto objects = ListAll(store_, "");
    // Models and reports are the user's.
    for (const ObjectInfo& object : *objects) {
      const bool working = object.key.find("/results/") == std::string::npos;
      counts["working objects"] += working ? 1 : 0;
      if (working) std::fprintf(stderr, "left: %s\n", object.key.c_str());
      if (object.key.find("/results/") != std::string::npos) (void)store_.Delete(object.key);
    }
    for (const ResourceType& type : {ServerlessTrainingJobType(), SecretType()}) {
      const auto list = server_.List(type, "", "", 0, "");
      counts[type.plural + " on the server"] = static_cast<int64_t>(list->items.size());
    }
    return counts;
  }

  void Judge(int hour, const Controller& controller) {
    for (const Json& job : Jobs()) {
      problems_.push_back(
          "hour " + std::to_string(hour) + ": " + NameOf(job).name +
          " is still there: " + DumpJson(job.value("status", Json())).substr(0, 600));
    }
    const Counts counts = Count(controller);
    functions_.ForgetGone();
    const double rss = static_cast<double>(ResidentBytes()) / (1024 * 1024);
    if (hour == 1) {
      for (const auto& [what, count] : counts) std::printf("  %s", what.c_str());
      std::printf("\n");
      first_ = counts;
    }
    if (hour == 2) second_rss_ = rss;
    std::printf("%4d %6d %8.1f", hour, created_, rss);
    for (const auto& [what, count] : counts) {
      std::printf("  %*lld", static_cast<int>(what.size()), static_cast<long long>(count));
      if (count <= first_[what]) continue;
      problems_.push_back("hour " + std::to_string(hour) + ": " + what + ": " +
                          std::to_string(count) + ", after the first hour " +
                          std::to_string(first_[what]));
    }
    std::printf("\n");
    std::fflush(stdout);
    if (hour > 2 && rss > second_rss_ + kSlackMib) {
      problems_.push_back("hour " + std::to_string(hour) + ": RSS " + std::to_string(rss) +
                          " MiB, after the second hour " + std::to_string(second_rss_));
    }
  }

  const double hours_;
  SimScheduler scheduler_;
  SimProcess& process_;
  CountingExecutor executor_;
  Runtime runtime_;
  InMemoryApiServer server_;
  MemoryObjectStore store_;
  FakeFunctions functions_;
  ControllerOptions options_;
  int created_ = 0;
  int failures_given_ = 0;
  std::set<std::string> deleted_;
  std::set<std::string> nowhere_;  // resume from a checkpoint that is not there
  Endings endings_;
  bool over_ = false;
  Counts first_;
  double second_rss_ = 0;
  std::vector<std::string> problems_;
};

int Main(int argc, char** argv) {
  CLI::App app(
      "Lets jobs come and go for a virtual day and counts what is left of them after every "
      "hour.\nExample: simulate_day --hours 24");
  double hours = 24;
  uint64_t seed = 1;
  app.add_option("--hours", hours, "Virtual hours, at least 3")->check(CLI::Range(3.0, 1000.0));
  app.add_option("--seed", seed, "Of everything that is left to chance");
  CLI11_PARSE(app, argc, argv);
  SetLogLevel(LogLevel::kError);
  return Day(seed, hours).Run();
}

}  // namespace
}  // namespace lambdadnn::simulation

int main(int argc, char** argv) { return lambdadnn::simulation::Main(argc, argv); }
