// SPDX-License-Identifier: Apache-2.0
// One controller, on real threads and real connections, with 300 jobs whose stores mean harm, each
// in a namespace of its own, beside one job that does not: that one trains to its end, the process
// stays small, and each of the others is told what its store does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "common/base/process_usage.h"
#include "common/objectstore/memory_object_store.h"
#include "common/objectstore/prefix_object_store.h"
#include "common/objectstore/retrying_object_store.h"
#include "common/objectstore/s3_object_store.h"
#include "operator/api/job_codec.h"
#include "operator/controller/loop/controller.h"
#include "operator/kinds/serverless_training_job.h"
#include "tests/support/fake_functions.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/job_world.h"
#include "tests/support/raw_server.h"
#include "tests/support/system_runtime.h"
#include "tests/unit/operator/controller/virtual_time.h"

namespace lambdadnn {
namespace {

constexpr int kHostileJobs = 300;
#if defined(__SANITIZE_THREAD__)
constexpr int64_t kProgramShare = 8;  // the sanitizer's own memory is several times the program's
#else
constexpr int64_t kProgramShare = 1;
#endif
constexpr int64_t kMostBytes = kProgramShare << 30;

// FakeFunctions is for one thread.
class LockedFunctions final : public FunctionBackend, public SliceClient {
 public:
  explicit LockedFunctions(FakeFunctions& inner) : inner_(inner) {}

  Status EnsureGroup(const FunctionGroup& group) override {
    const std::lock_guard lock(mutex_);
    return inner_.EnsureGroup(group);
  }
  Status DeleteGroup(const JobIdentity& job, const std::string& group) override {
    const std::lock_guard lock(mutex_);
    return inner_.DeleteGroup(job, group);
  }
  Status DeleteInstance(const JobIdentity& job, const std::string& uid) override {
    const std::lock_guard lock(mutex_);
    return inner_.DeleteInstance(job, uid);
  }
  Result<std::vector<FunctionInstance>> List(const JobIdentity& job) override {
    const std::lock_guard lock(mutex_);
    return inner_.List(job);
  }
  Status SetCpu(const JobIdentity& job, const std::string& uid, int milli_cpu) override {
    const std::lock_guard lock(mutex_);
    return inner_.SetCpu(job, uid, milli_cpu);
  }
  Result<std::string> Logs(const JobIdentity& job, const std::string& uid,
                           int last_lines) override {
    const std::lock_guard lock(mutex_);
    return inner_.Logs(job, uid, last_lines);
  }
  BackendCapabilities capabilities() const override { return inner_.capabilities(); }
  std::string IsolationName() const override { return "fake"; }
  Result<FunctionCapacity> Capacity() override {
    const std::lock_guard lock(mutex_);
    return inner_.Capacity();
  }

  void Start(const std::string& instance_uid, const Endpoint& endpoint, const SliceRequest& request,
             const FunctionAccess& access) override {
    const std::lock_guard lock(mutex_);
    inner_.Start(instance_uid, endpoint, request, access);
  }
  void Stop(const std::string& invocation, bool graceful) override {
    const std::lock_guard lock(mutex_);
    inner_.Stop(invocation, graceful);
  }
  void Forget(const std::string& invocation) override {
    const std::lock_guard lock(mutex_);
    inner_.Forget(invocation);
  }
  std::vector<SliceView> Poll(const std::string& job_uid) override {
    const std::lock_guard lock(mutex_);
    return inner_.Poll(job_uid);
  }
  void AskFingerprint(const JobIdentity& job, const std::string& instance_uid,
                      const Endpoint& endpoint, const FunctionAccess& access) override {
    const std::lock_guard lock(mutex_);
    inner_.AskFingerprint(job, instance_uid, endpoint, access);
  }
  std::vector<FingerprintAnswer> TakeFingerprints(const std::string& job_uid) override {
    const std::lock_guard lock(mutex_);
    return inner_.TakeFingerprints(job_uid);
  }

 private:
  std::mutex mutex_;
  FakeFunctions& inner_;
};

std::string Head(const std::string& status, const std::string& fields) {
  return "HTTP/1.1 " + status + "\r\n" + fields + "\r\n\r\n";
}

std::vector<RawServer::Script> Modes() {
  const std::string chunked = "Transfer-Encoding: chunked";
  const std::string huge = "Content-Length: 1099511627776";
  const std::string page =
      "<ListBucketResult><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>t</NextContinuationToken></ListBucketResult>";
  const std::string page_length = "Content-Length: " + std::to_string(page.size());
  const std::string block(65536, 'x');
  return {Drip("HTTP/1.1 200 OK\r\nX-Long: "),
          Drip(Head("200 OK", "Content-Length: 4000")),
          Drip(Head("503 Busy", "Content-Length: 4000")),
          Flood(Head("200 OK", huge), block),
          Flood(Head("200 OK", chunked), LargeChunk()),
          Flood(Head("403 Forbidden", chunked), LargeChunk()),
          Flood(Head("503 Busy", huge), block),
          Hang(),
          AnswerWith(Head("200 OK", page_length) + page, 1 << 20)};
}

class HostileStores : public testing::Test {
 protected:
  HostileStores()
      : server_(runtime_),
        functions_(runtime_.clock, store_, {.iteration_seconds = 0.02}),
        locked_(functions_) {
    DefineTypes(&server_);
    for (const RawServer::Script& mode : Modes()) {
      servers_.push_back(std::make_unique<RawServer>(std::vector{mode}));
    }
  }

  // As OpenStore puts them together, with less patience.
  Result<std::unique_ptr<ObjectStore>> Open(const StoreReference& reference) {
    if (reference.endpoint.empty()) {
      return std::unique_ptr<ObjectStore>(
          std::make_unique<FaultyObjectStore>(store_, runtime_, StoreFaults{}));
    }
    S3Options options;
    options.endpoint = reference.endpoint;
    options.bucket = "bucket";
    options.credentials.access_key = "key";
    options.credentials.secret_key = "secret";
    options.limits.total_seconds = 2;
    return std::unique_ptr<ObjectStore>(std::make_unique<RetryingObjectStore>(
        std::make_unique<PrefixObjectStore>(
            std::make_unique<S3ObjectStore>(NewDataTransport({.inactivity_seconds = 1}).value(),
                                            runtime_.clock, options),
            "theirs/"),
        runtime_, RetryOptions{.budget_seconds = 1}));
  }
  void CreateHostile(int index) {
    Json job = JobWorld::MinimalJob();
    job["metadata"]["name"] = "hostile";
    job["metadata"]["namespace"] = "team-" + std::to_string(index);
    job["spec"]["objectStore"] = {
        {"bucket", "bucket"},
        {"prefix", "theirs"},
        {"endpoint", servers_[static_cast<size_t>(index) % servers_.size()]->Url("")}};
    const auto created = server_.Create(ServerlessTrainingJobType(), job);
    ASSERT_TRUE(created.ok()) << created.status().ToString();
  }
  Job Read(const std::string& namespace_name, const std::string& name) {
    std::vector<FieldError> errors;
    const auto object = server_.Get(ServerlessTrainingJobType(), {namespace_name, name});
    return object.ok() ? DecodeJob(*object, &errors) : Job();
  }
  bool WaitFor(const std::function<bool()>& done, double seconds) {
    const Instant until = runtime_.clock.Now() + FromSeconds(seconds);
    while (!done() && runtime_.clock.Now() < until)
      runtime_.clock.SleepFor(std::chrono::milliseconds(50));
    return done();
  }
  // What job number `index` is told of its store; "" = nothing yet.
  std::string ToldOf(int index) {
    const Job job = Read("team-" + std::to_string(index), "hostile");
    const Condition* const accepted = FindCondition(job, kConditionAccepted);
    return accepted == nullptr ? std::string() : accepted->message;
  }

  SystemRuntime runtime_;
  InMemoryApiServer server_;
  MemoryObjectStore store_;
  FakeFunctions functions_;
  LockedFunctions locked_;
  std::vector<std::unique_ptr<RawServer>> servers_;
};

TEST_F(HostileStores, CostTheirOwnJobsAlone) {
  ControllerOptions options = JobWorld().options;
  ControllerDependencies dependencies{
      .runtime = runtime_,
      .kube = server_,
      .backend = locked_,
      .slices = locked_,
      .open_store = [this](const StoreReference& reference, const StoreSecrets&) {
        return Open(reference);
      }};
  Controller controller(dependencies, options);
  controller.Start();
  for (int i = 0; i < kHostileJobs; ++i) CreateHostile(i);
  ASSERT_TRUE(server_.Create(ServerlessTrainingJobType(), JobWorld::MinimalJob()).ok());
  EXPECT_TRUE(
      WaitFor([&] { return HasCondition(Read("default", "digits"), kConditionComplete); }, 120));
  for (int i = 0; i < kHostileJobs; ++i) {
    ASSERT_TRUE(WaitFor([&] { return !ToldOf(i).empty(); }, 120)) << i;
    const std::string told = ToldOf(i);
    EXPECT_THAT(told, testing::HasSubstr("spec.objectStore: s3://bucket cannot be used")) << i;
    EXPECT_THAT(told, testing::HasSubstr(
                          servers_[static_cast<size_t>(i) % servers_.size()]->Url("").substr(7)));
  }
  EXPECT_LT(CurrentProcessUsage().max_rss_bytes, kMostBytes);
  controller.Stop();
}

}  // namespace
}  // namespace lambdadnn
